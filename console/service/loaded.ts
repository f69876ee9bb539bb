/** What a page shows of the service: loaded, loaded again, and kept while that fails. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from './attempt.js';
import { session } from './session.js';

export interface Loaded<T> {
  readonly value: T | undefined;
  /** What went wrong last; an earlier value stays. */
  readonly error: string | undefined;
  readonly loading: boolean;
  readonly reload: () => void;
}

export interface Options<T> {
  /** Reason for personal fields: another one loads again, and without it nothing that was shown for it stays. */
  readonly sight?: string | undefined;
  /** Loads again so many milliseconds after each answer, while the page is visible; `undefined`: not again. */
  readonly everyMs?: number | undefined | ((latest: T | undefined) => number | undefined);
}

/** Shortest pause between two looks at something in progress. */
const LEAST_MS = 2_000;

/** Pause before another look at what has been in progress since this time: looks become rare where it takes long. */
export const pauseSince = (at: string): number => Math.max(LEAST_MS, (Date.now() - Date.parse(at)) / 4);

/** @param load is called anew when one of `of` changes, and once a session has begun */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  of: readonly unknown[],
  { sight, everyMs }: Options<T> = {},
): Loaded<T> {
  const [{ value, error, loading }, set] = useState<Omit<Loaded<T>, 'reload'>>({
    value: undefined,
    error: undefined,
    loading: true,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const isIn = session.value.state === 'in';
  // The value of another gift must not be shown while that of this one is loaded.
  const clear = (): void => set({ value: undefined, error: undefined, loading: true });
  useEffect(clear, of);
  useEffect(() => {
    if (sight === undefined) clear();
  }, [sight]);
  useEffect(() => {
    if (!isIn) return undefined;
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last: T | undefined;
    const pauseMs = (): number | undefined => (typeof everyMs === 'function' ? everyMs(last) : everyMs);
    const run = async (): Promise<void> => {
      if (!document.hidden || pauseMs() === undefined) {
        set((before) => ({ ...before, loading: true }));
        try {
          const loaded = await latest.current(gone.signal);
          last = loaded;
          if (!gone.signal.aborted) set({ value: loaded, error: undefined, loading: false });
        } catch (failure) {
          const message = messageOf(failure);
          if (!gone.signal.aborted) set((before) => ({ ...before, error: message, loading: false }));
        }
      }
      const wait = pauseMs();
      if (wait !== undefined && !gone.signal.aborted) timer = setTimeout(() => void run(), wait);
    };
    void run();
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [...of, sight, turn, isIn]);
  return { value, error, loading, reload: useCallback(() => setTurn((before) => before + 1), []) };
}
