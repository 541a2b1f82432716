import { Component, type ReactNode } from "react";
import { Button } from "../components/Button";
import { CopyButton } from "../components/CopyButton";
import { Callout } from "../components/Panel";

interface State {
  error: Error | null;
}

// An error of the page itself. The rail stays, and another page can be opened; `at` is the address, which drops the error.
export class ErrorBoundary extends Component<{ at?: string; children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: Error): State {
    return { error };
  }

  override componentDidUpdate(before: { at?: string }): void {
    if (before.at !== this.props.at && this.state.error !== null) this.setState({ error: null });
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div style={{ padding: 20 }}>
        <Callout colour="failed">
          <b>This page has an error</b>
          <p className="d2">{error.message} Workers do not need this page: work continues.</p>
          <div className="row" style={{ paddingTop: 8 }}>
            <Button kind="primary" onClick={() => window.location.reload()}>
              Load the page again
            </Button>
            <CopyButton text={`${error.stack}`} label="Copy the details of the error" word="Copy details" />
          </div>
        </Callout>
      </div>
    );
  }
}
