import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { type Problem, problemOf } from "../../../api/problem";
import { Button } from "../../../components/Button";
import { Dialog, FormFoot } from "../../../components/Dialog";
import { Check } from "../../../components/Field";
import { count } from "../../../lib/format";
import css from "./BulkDialog.module.css";
import { previewOf, send } from "./send";
import { type Target, titleOf, type Verb, WORDS } from "./verbs";

interface Props {
  verb: Verb;
  target: Target;
  // Whether all of them are dead letters.
  isDead?: boolean;
  // Of which job they are, if of one.
  job?: string;
  // What speaks against it: "The error still happens: …".
  warning?: ReactNode;
  onClose: () => void;
  onDone?: () => void;
}

const EXPLAINED: Record<Verb, (job: ReactNode) => ReactNode> = {
  replay: (job) => <>Each becomes a new execution{job} with its old arguments, queue and priority.</>,
  discard: () => <>They leave the dead letters; their history stays.</>,
  cancel: () => <>What waits ends at once. What runs is asked to stop; code that does not look may finish.</>,
};
const USUAL_RATE = "5";

// Asks, with the number that a dry run has found. What arrives after the question is not included.
export function BulkDialog({ verb, target, isDead = false, job, warning, onClose, onDone }: Props) {
  const client = useQueryClient();
  const [isLimited, setLimited] = useState(warning !== undefined);
  const [rate, setRate] = useState(USUAL_RATE);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const preview = useQuery({
    queryKey: ["preview", verb, target],
    queryFn: () => previewOf(verb, target),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const byFilter = !("ids" in target);
  const number = preview.data?.count;
  const perSecond = Number(rate);
  const isRateWrong = isLimited && !(perSecond > 0);
  const act = async (event: FormEvent) => {
    event.preventDefault();
    if (isBusy || number === undefined || number === 0 || isRateWrong) return;
    setBusy(true);
    try {
      const sent = { verb, target, number, rate: isLimited && byFilter ? perSecond : undefined };
      await send(sent, () => void client.invalidateQueries());
      void client.invalidateQueries();
      onDone?.();
      onClose();
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setBusy(false);
    }
  };
  const failure = problem ?? (preview.error === null ? null : problemOf(preview.error));
  const name =
    job === undefined ? (
      ""
    ) : (
      <>
        {" "}
        of <b>{job}</b>
      </>
    );
  return (
    <Dialog title={number === undefined ? `${WORDS[verb].name} …` : titleOf(verb, number, isDead)} onClose={onClose}>
      <form className="col" onSubmit={(event) => void act(event)}>
        <p className="d2">
          {EXPLAINED[verb](name)} {byFilter && "What arrives from now on is not included."}
        </p>
        {warning !== undefined && <div className={css.warning}>{warning}</div>}
        {verb === "replay" && byFilter && (
          <div className="row wrap">
            <Check label="At most" isOn={isLimited} onChange={(isOn) => setLimited(isOn)} />
            <input
              className={css.rate}
              aria-label="Replays per second"
              inputMode="decimal"
              value={rate}
              disabled={!isLimited}
              aria-invalid={isRateWrong}
              onChange={(event) => setRate(event.target.value)}
            />
            <span>per second, so that new work is not held up</span>
          </div>
        )}
        {isRateWrong && <p className="sm c-failed">The rate is a number above 0.</p>}
        {failure !== null && <p className="sm c-failed">{failure.message}</p>}
        <FormFoot>
          <Button onClick={onClose} data-autofocus={warning === undefined ? undefined : true}>
            {WORDS[verb].keep}
          </Button>
          <Button
            kind={warning === undefined ? "primary" : "plain"}
            type="submit"
            data-autofocus={warning === undefined ? true : undefined}
            disabled={isBusy || !number || isRateWrong}
          >
            {WORDS[verb].name} {number === undefined ? "…" : count(number)}
          </Button>
        </FormFoot>
      </form>
    </Dialog>
  );
}
