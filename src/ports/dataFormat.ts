/**
 * The format of everything that the service stores: one number for all files and databases. Each has it from its
 * beginning, with the version of the release that wrote it, and whoever opens one compares it before anything is changed
 * (docs/design.md#data-format).
 */
import { VERSION } from '../lib/version.js';

/** States before 0.1.0, which were never released, wrote none, or a lower one. */
export const DATA_FORMAT = 3;

export interface FormatMark {
  readonly format: number;
  /** The release that wrote it. */
  readonly version: string;
}

export const FORMAT_MARK: FormatMark = { format: DATA_FORMAT, version: VERSION };

export interface FormatFault {
  /** What is wrong, after the name of what is refused. */
  readonly problem: string;
  readonly remedy: string;
}

/** A mark as found; absent parts were not there. */
export type FoundMark = { readonly [Part in keyof FormatMark]?: FormatMark[Part] | undefined };

/** `undefined`: this release reads and writes it. */
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
