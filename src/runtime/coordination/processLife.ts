import { readFileSync, readlinkSync } from 'node:fs';

/**
 * Identifies a process for all time: the machine's boot, the namespace of process ids (one for each container), the id,
 * and the start, since ids are reused. `undefined`: the system does not say.
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

/** Whether both processes belong to the same container of the same boot. */
export function isOfThisMachine(life: string, own: string): boolean {
  const parts = life.split('/');
  const ownParts = own.split('/');
  return parts.length === 4 && parts[0] === ownParts[0] && parts[1] === ownParts[1];
}

/** True only if the process has certainly ended: never for another machine or container, nor for a frozen process. */
export function hasEnded(life: string, own: string | undefined = processLife()): boolean {
  // Of this process itself nothing is read: Linux adds up the times of all threads for each read.
  if (own === undefined || life === own || !isOfThisMachine(life, own)) return false;
  const parts = life.split('/');
  const id = Number(parts[2]);
  try {
    const stat = statOf(id);
    return stat === undefined ? isGone(id) : stat.ended || stat.startedAt !== parts[3];
  } catch {
    return false;
  }
}

/** Whether the process is alive, even if it is frozen; `undefined`: unknown. */
export function lives(life: string, own: string | undefined = processLife()): boolean | undefined {
  return own === undefined || !isOfThisMachine(life, own) ? undefined : !hasEnded(life, own);
}

/** `/proc` may hide other users' processes (`hidepid`); a signal to them is refused with another error. */
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
  /** Whether the process has exited, for example as a zombie that its parent has not reaped. */
  readonly ended: boolean;
}

/** @throws Error when `/proc` can't be read */
function statOf(id: number | 'self'): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${id}/stat`, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
  // The process name, in brackets, may contain any characters.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = ''] = fields;
  return { id: text.slice(0, text.indexOf(' ')), startedAt: fields[19] ?? '', ended: state === 'Z' || state === 'X' };
}
