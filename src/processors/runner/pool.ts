/** Limits concurrent tasks. Groups take turns, so a group of ten thousand tasks holds up no other. */
import { after, endTimer, type Timer } from '../../lib/world.js';

type Task = () => Promise<void>;

export interface Pool {
  /** Tasks of one group start in the order of `add`. A task must not throw. */
  add(group: string, task: Task): void;
  /** Drops tasks that have not started; resolves when running ones have ended. */
  stop(): Promise<void>;
}

interface Line {
  readonly tasks: Task[];
  next: number;
}

const POLL_MS = 20;

/** While `mayStart` is false no task starts: one timer checks again, instead of thousands of failing tasks. */
export function openPool(limit: number, mayStart: () => boolean = () => true): Pool {
  const lines = new Map<string, Line>();
  const idle: (() => void)[] = [];
  let running = 0;
  let poll: Timer | undefined;
  let stopped = false;

  const take = (): Task | undefined => {
    const [first] = lines;
    if (first === undefined) return undefined;
    const [group, line] = first;
    const task = line.tasks[line.next++];
    // The group's other tasks go to the end of the queue.
    lines.delete(group);
    if (line.next < line.tasks.length) lines.set(group, line);
    return task;
  };

  const fill = (): void => {
    while (running < limit) {
      if (lines.size > 0 && !mayStart()) {
        poll ??= after(POLL_MS, () => {
          poll = undefined;
          fill();
        });
        break;
      }
      const task = take();
      if (task === undefined) break;
      running++;
      void task().finally(() => {
        running--;
        fill();
      });
    }
    if (running === 0) for (const resolve of idle.splice(0)) resolve();
  };

  return {
    add(group, task) {
      if (stopped) return;
      const line = lines.get(group);
      if (line === undefined) lines.set(group, { tasks: [task], next: 0 });
      else line.tasks.push(task);
      fill();
    },
    async stop() {
      stopped = true;
      endTimer(poll);
      lines.clear();
      if (running > 0) await new Promise<void>((resolve) => idle.push(resolve));
    },
  };
}
