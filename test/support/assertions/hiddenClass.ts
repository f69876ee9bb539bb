/** Whether the engine keeps two objects alike: how fast they are made and read depends on it. */
import { setFlagsFromString } from 'node:v8';

setFlagsFromString('--allow-natives-syntax');

/** Whether both objects have the same hidden class. */
// oxlint-disable-next-line no-implied-eval, no-new-func -- TypeScript does not know the engine's own syntax.
export const sameHiddenClass = new Function('one', 'other', 'return %HaveSameMap(one, other)') as (
  one: object,
  other: object,
) => boolean;
