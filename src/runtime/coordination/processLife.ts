/** Tells whether a process on this machine has ended. */
import { readFileSync, readlinkSync } from 'node:fs';

/**
 * Identifies one process among all there ever were: boot of the machine, namespace of its process ids (a container has
 * its own), id and start, since ids are used again. `undefined` where the system doesn't tell.
 */
export function processLife(id: number | 'self' = 'self'): string | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = statOf(id);
    return stat === undefined ? undefined : `${boot}/${readlinkSync('/proc/self/ns/pid')}/${stat.id}/${stat.startedAt}`;
  } catch {
    return undefined;
  }
}

/** Whether that process is of this machine and container, so that `hasEnded` can tell whether it lives. */
export function isOfThisMachine(life: string, own: string): boolean {
  const parts = life.split('/');
  const here = own.split('/');
  return parts.length === 4 && parts[0] === here[0] && parts[1] === here[1];
}

/** Whether that process has certainly ended. Never true of another machine or container, nor of a frozen process. */
export function hasEnded(life: string, own: string | undefined = processLife()): boolean {
  if (own === undefined || !isOfThisMachine(life, own)) return false;
  const parts = life.split('/');
  const id = Number(parts[2]);
  try {
    const stat = statOf(id);
    return stat === undefined ? isGone(id) : stat.ended || stat.startedAt !== parts[3];
  } catch {
    return false;
  }
}

/** Whether that process lives, be it frozen; `undefined`: unknown, as of another machine or container. */
export function lives(life: string, own: string | undefined = processLife()): boolean | undefined {
  return own === undefined || !isOfThisMachine(life, own) ? undefined : !hasEnded(life, own);
}

/** Whether there is no such process. `/proc` may hide others' processes (`hidepid`): a signal is refused then. */
function isGone(id: number): boolean {
  try {
    process.kill(id, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

interface Stat {
  readonly id: string;
  readonly startedAt: string;
  /** It has ended, and its parent has not taken note of that. */
  readonly ended: boolean;
}

/** `undefined`: there is none to be seen. @throws Error when it can't be told */
function statOf(id: number | 'self'): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${id}/stat`, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
  // The name, in brackets, may hold anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = ''] = fields;
  return { id: text.slice(0, text.indexOf(' ')), startedAt: fields[19] ?? '', ended: state === 'Z' || state === 'X' };
}
