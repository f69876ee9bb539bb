/**
 * Runs tasks side by side, so many at once, and fairly: groups take turns, so one with ten thousand tasks holds up
 * nobody else's.
 */

/** Something to do; it must not throw. */
export type Task = () => Promise<void>;

/** The pool. */
export interface Pool {
  /** Runs the task when its turn comes. Tasks of one group begin in the order they were added. */
  add(group: string, task: Task): void;
  /** Drops what has not begun; resolves when what runs has ended. */
  stop(): Promise<void>;
}

/** What waits of one group: `tasks` from `next` on. */
interface Line {
  readonly tasks: Task[];
  next: number;
}

/** A pool of at most `limit` tasks at once. */
export function openPool(limit: number): Pool {
  const lines = new Map<string, Line>();
  const idle: (() => void)[] = [];
  let running = 0;
  let stopped = false;

  const take = (): Task | undefined => {
    const [first] = lines;
    if (first === undefined) return undefined;
    const [group, line] = first;
    const task = line.tasks[line.next++];
    // Behind the others, with what is left.
    lines.delete(group);
    if (line.next < line.tasks.length) lines.set(group, line);
    return task;
  };

  const fill = (): void => {
    while (running < limit) {
      const task = take();
      if (task === undefined) break;
      running++;
      void task().finally(() => {
        running--;
        fill();
      });
    }
    if (running === 0) for (const tell of idle.splice(0)) tell();
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
      lines.clear();
      if (running > 0) await new Promise<void>((resolve) => idle.push(resolve));
    },
  };
}
