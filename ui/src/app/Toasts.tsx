import { Bar } from "../components/Bar";
import { Icon } from "../components/Icon";
import { StateIcon } from "../components/StateIcon";
import { useSignal } from "../lib/signal";
import css from "./Toasts.module.css";
import { dropToast, toasts } from "./toasts";

export function Toasts() {
  const shown = useSignal(toasts);
  return (
    <section className={css.toasts} aria-label="Messages" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.id} className={`inverted ${css.toast}`}>
          <StateIcon status={toast.kind} />
          <span className="gr">{toast.text}</span>
          {toast.progress !== undefined && (
            <Bar parts={[{ share: toast.progress, colour: "running" }]} label={toast.text} width={90} />
          )}
          {toast.action !== undefined && (
            <button
              type="button"
              className="ln"
              onClick={() => {
                toast.action?.run();
                dropToast(toast.id);
              }}
            >
              {toast.action.label}
            </button>
          )}
          <button type="button" aria-label="Close the message" onClick={() => dropToast(toast.id)}>
            <Icon name="cross" />
          </button>
        </div>
      ))}
    </section>
  );
}
