/** Faults of an import file. No message repeats a secret or a name, so faults can be shown and stored. */
import { ARRAY_NAMES, type ArrayName } from './file.js';

export interface ImportFault {
  /** Location of the fault, such as `products[3].brand_id`; empty: the whole file. */
  readonly place: string;
  readonly fault: string;
}

/** The file was refused. `appended`: number of events appended before another import interfered; mostly 0. */
export class ImportFaultsError extends Error {
  override readonly name = 'ImportFaultsError';
  readonly faults: readonly ImportFault[];
  readonly appended: number;
  constructor(faults: readonly ImportFault[], appended: number) {
    super(`the import file has ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}`);
    this.faults = faults;
    this.appended = appended;
  }
}

export interface FaultCollector {
  /** Adds a fault of one entry; `path` starts with `.` or `[`, or is empty. */
  add(array: ArrayName, index: number, path: string, fault: string): void;
  /** Adds a fault of the whole file, or of a field at its top level. */
  addToFile(place: string, fault: string): void;
  /** All faults, in the order of the file's arrays and entries. */
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
