/**
 * The format of everything that the service stores: one number for all files and databases. Each is created with this
 * number and the version of the release that wrote it. A program that opens one compares the number before it changes
 * anything (docs/design.md#data-format).
 */
import { VERSION } from '../lib/version.js';

/** The format number of this release. Unreleased states of the program before 0.1.0 wrote no number, or a lower one. */
export const DATA_FORMAT = 3;

export interface FormatMark {
  readonly format: number;
  /** The release that wrote the file or database. */
  readonly version: string;
}

export const FORMAT_MARK: FormatMark = { format: DATA_FORMAT, version: VERSION };

export interface FormatFault {
  /** The problem, as text that follows the name of the refused file or database. */
  readonly problem: string;
  readonly remedy: string;
}

/** A format mark as it was found in a file or database; a part that was not found is absent. */
export type FoundMark = { readonly [Part in keyof FormatMark]?: FormatMark[Part] | undefined };

/** Why this release refuses data with this mark; `undefined` when it reads and writes the data. */
export function formatFault({ format = 0, version = 'that wrote it' }: FoundMark): FormatFault | undefined {
  if (format === DATA_FORMAT) return undefined;
  if (format > DATA_FORMAT)
    return {
      problem: `has data format ${format}, and release ${VERSION} reads ${DATA_FORMAT} only`,
      remedy: `run release ${version} or a later one`,
    };
  return {
    problem: 'was written by a state before 0.1.0, which no release reads',
    remedy: 'run the program that wrote it, or begin a new installation elsewhere',
  };
}
