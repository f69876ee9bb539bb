import { differenceInWords, eventInWords } from './differenceInWords.js';
import type { FirstDifference, Stray, Verification } from './verification.js';

export const NOT_NEXT = 'this is not the next event of its stream: ';

export const strayInWords = ({ event }: Stray): string =>
  `an event was inserted where the log has no position: ${eventInWords(event)}`;

/** Fault of a log. `spoilt tiles`: the log is what was signed, but stored tiles are corrupted. */
export type Fault =
  | { readonly what: 'difference'; readonly difference: FirstDifference }
  | {
      readonly what: 'stray' | 'missing event' | 'wrong head' | 'unknown signer' | 'spoilt tiles';
      readonly words: string;
    };

/** The most informative fault of a verification; `undefined` where everything is as it was signed. */
export function firstFault(found: Verification): Fault | undefined {
  const { difference, verified_heads, unverified_heads } = found;
  const [gap] = found.gaps.first;
  const [streamGap] = found.stream_gaps.first;
  const [stray] = found.strays.first;
  const [head] = found.wrong_heads.first;
  if (difference !== null) return { what: 'difference', difference };
  if (stray !== undefined) return { what: 'stray', words: strayInWords(stray) };
  if (gap !== undefined)
    return { what: 'missing event', words: `events are missing before ${eventInWords(gap.event)}` };
  if (streamGap !== undefined)
    return {
      what: 'missing event',
      words: `${NOT_NEXT}${eventInWords(streamGap.event)}`,
    };
  if (unverified_heads > 0 && verified_heads === 0)
    return { what: 'unknown signer', words: 'no head is signed by a known key' };
  if (head !== undefined) return { what: 'wrong head', words: `${head.from}, of ${head.size} events: ${head.why}` };
  if (found.spoilt_tiles) return { what: 'spoilt tiles', words: 'tiles are not what was signed; the log is' };
  return undefined;
}

export function faultInWords(fault: Fault): string {
  return fault.what === 'difference' ? differenceInWords(fault.difference) : fault.words;
}
