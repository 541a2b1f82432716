import { CopyButton } from "./CopyButton";
import css from "./CopyCommand.module.css";

// A command for the terminal, for those who may not press the button, or prefer to type.
export function CopyCommand({ command }: { command: string }) {
  return (
    <div className={css.box}>
      <div className={css.command}>
        <code className="gr">{command}</code>
        <CopyButton text={command} label="Copy the command" word="Copy" />
      </div>
      {command.includes(" MODULE:") && <span className="sm d3">MODULE is the module that defines the app.</span>}
    </div>
  );
}
