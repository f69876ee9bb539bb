/**
 * Whether what an import file refers to exists. Looks at entries as they stand, so that a fault elsewhere in an entry
 * hides none here.
 */
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

/** What references are checked against. */
export interface ReferenceInput {
  readonly shaped: Shaped;
  readonly log: LogState;
  /** Live entries of the file's arrays that the file doesn't name are about to be retired. */
  readonly prune: boolean;
}

/**
 * What is referred to must stand in the file, or live in the log and not be about to be pruned; in a list it must stand
 * once.
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
  tell: (at: number, fault: string) => void,
): void {
  const seen = new Set<unknown>();
  for (const [at, id] of ids.entries()) {
    if (seen.has(id)) tell(at, 'stands in the list twice');
    else checkOne(input, id, kind, (fault) => tell(at, fault));
    seen.add(id);
  }
}

/** What is no id has been told by its shape. */
function checkOne(
  { shaped, log, prune }: ReferenceInput,
  id: unknown,
  kind: IdKind,
  tell: (fault: string) => void,
): void {
  if (typeof id !== 'string' || !ID.test(id)) return;
  const declared = shaped.declared.get(ARRAY_OF[kind]);
  if (declared?.has(id) === true) return;
  const status = log.entries[kind].get(id)?.state.status ?? 'none';
  const word = NAMES[kind];
  if (status === 'none') tell(`no such ${word} "${id}"`);
  else if (status === 'retired') tell(`${word} "${id}" is retired: bring it back in the same file`);
  else if (prune && declared !== undefined) tell(`${word} "${id}" has gone from the file and would be pruned`);
}

const ARRAY_OF = Object.fromEntries(ARRAY_NAMES.map((array) => [KIND_OF_ARRAY[array], array])) as Record<
  IdKind,
  ArrayName
>;
