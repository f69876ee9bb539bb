/** Faults of an import file. A message never repeats a secret or a name, so that it can be shown and stored. */
import { ARRAY_NAMES, type ArrayName } from './file.js';

export interface ImportFault {
  /** For example `products[3].brand_id`; empty: the file as a whole. */
  readonly place: string;
  /** For example `no such brand "b9"`. */
  readonly fault: string;
}

/** The file was refused. `appended`: events appended before another import made the rest impossible; mostly 0. */
export class ImportFaultsError extends Error {
  override readonly name = 'ImportFaultsError';
  readonly faults: readonly ImportFault[];
  readonly appended: number;
  constructor(faults: readonly ImportFault[], appended = 0) {
    super(`the import file has ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}`);
    this.faults = faults;
    this.appended = appended;
  }
}

export interface FaultCollector {
  /** Of an entry. `path` starts with `.` or `[`, or is empty. */
  add(array: ArrayName, index: number, path: string, fault: string): void;
  /** Of the file as a whole, or of a field at its top. */
  addToFile(place: string, fault: string): void;
  /** In the order of the file's arrays and entries. */
  all(): ImportFault[];
}

export function faultCollector(): FaultCollector {
  const found: { readonly order: number; readonly index: number; readonly fault: ImportFault }[] = [];
  return {
    add(array, index, path, fault) {
      found.push({ order: ARRAY_NAMES.indexOf(array), index, fault: { place: `${array}[${index}]${path}`, fault } });
    },
    addToFile(place, fault) {
      found.push({ order: -1, index: 0, fault: { place, fault } });
    },
    all: () =>
      found.toSorted((left, right) => left.order - right.order || left.index - right.index).map(({ fault }) => fault),
  };
}
