import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { type Problem, problemOf } from "../api/problem";
import { showToast, type Toast } from "../app/toasts";

interface ActionOptions<T> {
  // The words after it succeeded, with an undo where there is one; nothing if the page itself shows the effect.
  done?: (answer: T) => Omit<Toast, "id" | "kind"> | string | undefined;
  // How the words begin if it did not succeed: "Not cancelled". The reason of the server follows.
  failed: string;
}

export interface Action<A extends unknown[], T> {
  run: (...given: A) => Promise<T | undefined>;
  isBusy: boolean;
  problem: Problem | null;
  clear: () => void;
}

// A change: sends it once, says what came of it, and fetches again what is on screen. While it is under way a second
// press does nothing.
export function useAction<A extends unknown[], T>(
  send: (...given: A) => Promise<T>,
  { done, failed }: ActionOptions<T>,
): Action<A, T> {
  const client = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const run = useCallback(
    async (...given: A) => {
      if (isBusy) return undefined;
      setBusy(true);
      setProblem(null);
      try {
        const answer = await send(...given);
        const words = done?.(answer);
        if (words !== undefined)
          showToast({ kind: "success", ...(typeof words === "string" ? { text: words } : words) });
        // The caller closes its dialog at once; the button stays disabled until the page shows the effect.
        void client.invalidateQueries().finally(() => setBusy(false));
        return answer;
      } catch (error) {
        const found = problemOf(error);
        setProblem(found);
        showToast({ kind: "failed", text: `${failed}: ${found.message}.`.replace(/\.\.$/, ".") });
        setBusy(false);
        return undefined;
      }
    },
    [send, done, failed, client, isBusy],
  );
  return { run, isBusy, problem, clear: () => setProblem(null) };
}
