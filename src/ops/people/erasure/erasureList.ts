/** Lines of an external list of erasures: one JSON object a line, without personal data. */
import type { Erasure } from './erasureRecord.js';

const ID = /^[\w-]{22}$/;

export const erasureLine = (erasure: Erasure): string => JSON.stringify(erasure);

/** @returns `undefined` for a line that is no erasure */
export function parseErasureLine(line: string): Erasure | undefined {
  try {
    const erasure = JSON.parse(line) as Partial<Erasure> | null;
    return isErasure(erasure) ? erasure : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isErasure(found: Partial<Erasure> | null): found is Erasure {
  const { id, person, reason, by, at } = found ?? {};
  const named =
    person?.kind === 'user'
      ? typeof person.userId === 'string' && person.userId !== ''
      : person?.kind === 'number' && ID.test(person.phoneId);
  return (
    typeof id === 'string' &&
    ID.test(id) &&
    named &&
    typeof reason === 'string' &&
    typeof by === 'object' &&
    typeof at === 'string' &&
    !Number.isNaN(Date.parse(at))
  );
}
