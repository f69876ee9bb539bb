import { inSlices } from '../lib/async/slices.js';
import type { FaultCollector } from './faults.js';
import { ARRAY_NAMES, type ArrayName, type IdKind, KIND_OF_ARRAY } from './file.js';
import type { LogState } from './logState.js';
import { REFERENCES } from './referenceFields.js';
import { ID_PATTERN } from './schemas.js';
import type { Shaped } from './shapes.js';

const NAMES: Readonly<Record<IdKind, string>> = {
  integration: 'integration',
  merchant: 'merchant',
  brand: 'brand',
  store: 'store',
  segment: 'segment',
  product: 'product',
  category: 'category',
  user: 'user',
  client: 'client',
  paymentMethod: 'payment method',
};

const ID = new RegExp(ID_PATTERN);

export interface ReferenceInput {
  readonly shaped: Shaped;
  readonly log: LogState;
  /** True where entries that are missing from the file's arrays will be retired. */
  readonly prune: boolean;
}

/**
 * A referenced entry must be in the file, or live in the log and not be pruned. A list must name it once. References of
 * entries with other faults are checked, too.
 */
export async function checkReferences(input: ReferenceInput, faults: FaultCollector): Promise<void> {
  for (const array of ARRAY_NAMES) {
    const references = Object.entries(REFERENCES[array]);
    if (references.length === 0) continue;
    await inSlices(input.shaped.objects.get(array) ?? [], ({ index, entry }) => {
      for (const [field, kind] of references) {
        const value = entry[field];
        if (Array.isArray(value))
          checkList(input, value, kind, (at, fault) => faults.add(array, index, `.${field}[${at}]`, fault));
        else checkOne(input, value, kind, (fault) => faults.add(array, index, `.${field}`, fault));
      }
    });
  }
}

function checkList(
  input: ReferenceInput,
  ids: readonly unknown[],
  kind: IdKind,
  add: (at: number, fault: string) => void,
): void {
  const seen = new Set<unknown>();
  for (const [at, id] of ids.entries()) {
    if (seen.has(id)) add(at, 'stands in the list twice');
    else checkOne(input, id, kind, (fault) => add(at, fault));
    seen.add(id);
  }
}

function checkOne(
  { shaped, log, prune }: ReferenceInput,
  id: unknown,
  kind: IdKind,
  add: (fault: string) => void,
): void {
  // The check of shapes reports malformed ids.
  if (typeof id !== 'string' || !ID.test(id)) return;
  const declared = shaped.declared.get(ARRAY_OF[kind]);
  if (declared?.has(id) === true) return;
  const status = log.entries[kind].get(id)?.state.status ?? 'none';
  const word = NAMES[kind];
  if (status === 'none') add(`no such ${word} "${id}"`);
  else if (status === 'retired') add(`${word} "${id}" is retired: bring it back in the same file`);
  else if (status === 'erased') add(`${word} "${id}" was erased`);
  else if (prune && declared !== undefined) add(`${word} "${id}" has gone from the file and would be pruned`);
}

const ARRAY_OF = Object.fromEntries(ARRAY_NAMES.map((array) => [KIND_OF_ARRAY[array], array])) as Record<
  IdKind,
  ArrayName
>;
