/**
 * Pauses that end together, at beats of the thread. A thread at rest wakes once for all that polls in it, since waking
 * it costs more than most polls.
 */
import { after, endTimer, perWorld, sharedTicks, type Timer } from '../world.js';
import { pause } from './pause.js';

const BEAT_MS = 250;

interface Waiter {
  readonly wake: () => void;
  /** Whether the wait keeps the process alive. */
  readonly keepsAlive: boolean;
}

interface Beats {
  /** Waiters of this thread by the number of their beat. */
  readonly waiting: Map<number, Set<Waiter>>;
  timer: Timer | undefined;
  /** The beat that the timer is set for. */
  next: number;
}

const beatsOfThread = perWorld((): Beats => ({ waiting: new Map(), timer: undefined, next: Number.POSITIVE_INFINITY }));

const beatAt = (time: number): number => Math.round(time / BEAT_MS);

/**
 * The beat at which a pause of `ms` ends. Pauses of half a second end at half seconds, of a second at whole seconds,
 * and so on by doubling: the same pause again and again keeps its rhythm, and that of all pauses of its length.
 */
function endOf(ms: number): number {
  const step = 2 ** Math.floor(Math.log2(Math.max(1, Math.round(ms / BEAT_MS))));
  const last = Math.floor(beatAt(sharedTicks() + ms) / step) * step;
  return last > beatAt(sharedTicks()) ? last : last + step;
}

/**
 * Waits for up to `ms` milliseconds, until a beat that others wait for too; or until `signal` is aborted. A pause that
 * is shorter than a beat takes `ms`.
 */
export async function pauseForBeats(ms: number, signal: AbortSignal): Promise<void> {
  if (ms < BEAT_MS) return pause(ms, signal);
  if (signal.aborted) return undefined;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      signal.removeEventListener('abort', end);
      leave();
      resolve();
    };
    const leave = enter(ms, { wake: end, keepsAlive: true });
    signal.addEventListener('abort', end);
  });
  return undefined;
}

/** Calls `work`, which must not throw, about every `ms`, at beats. Keeps no process alive. @returns ends that */
export function everyBeats(ms: number, work: () => void): () => void {
  let leave = (): void => undefined;
  const start = (): void => {
    leave = enter(ms, {
      wake() {
        start();
        work();
      },
      keepsAlive: false,
    });
  };
  start();
  return () => leave();
}

function enter(ms: number, waiter: Waiter): () => void {
  const { waiting } = beatsOfThread();
  const beat = endOf(ms);
  const together = waiting.get(beat) ?? new Set();
  waiting.set(beat, together.add(waiter));
  setTimer();
  return () => {
    if (!together.delete(waiter)) return;
    if (together.size === 0 && waiting.get(beat) === together) waiting.delete(beat);
    setTimer();
  };
}

function setTimer(): void {
  const beats = beatsOfThread();
  const first = Math.min(...beats.waiting.keys());
  if (first !== beats.next) {
    endTimer(beats.timer);
    // The thread was busy, where the beat is over: Node warns of a negative wait.
    const ms = Math.max(0, first * BEAT_MS - sharedTicks());
    beats.timer = first === Number.POSITIVE_INFINITY ? undefined : after(ms, beat);
    beats.next = first;
  }
  const keepsAlive = [...beats.waiting.values()].some((waiters) => [...waiters].some((one) => one.keepsAlive));
  if (keepsAlive) beats.timer?.ref();
  else beats.timer?.unref();
}

function beat(): void {
  const { waiting } = Object.assign(beatsOfThread(), { next: Number.POSITIVE_INFINITY });
  const present = beatAt(sharedTicks());
  // A busy thread may be late for several beats.
  const over = [...waiting].filter(([due]) => due <= present);
  for (const [due] of over) waiting.delete(due);
  for (const [, waiters] of over)
    for (const one of waiters) {
      waiters.delete(one);
      one.wake();
    }
  setTimer();
}
