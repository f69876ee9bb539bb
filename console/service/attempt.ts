/** Work that a button starts. */
import { useState } from 'preact/hooks';

/** What went wrong, as it is shown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export interface Attempt {
  readonly busy: boolean;
  /** What went wrong last; `undefined`: nothing, or the work is in progress. */
  readonly wrong: string | undefined;
  /** Does the work; its failure is shown, not thrown. */
  readonly attempt: (work: () => Promise<void>) => Promise<void>;
}

export function useAttempt(): Attempt {
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string>();
  return {
    busy,
    wrong,
    async attempt(work) {
      setBusy(true);
      setWrong(undefined);
      try {
        await work();
      } catch (error) {
        setWrong(messageOf(error));
      } finally {
        setBusy(false);
      }
    },
  };
}
