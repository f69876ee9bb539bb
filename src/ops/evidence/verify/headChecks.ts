/** Checks signed heads against a tree that grows over the log, in the order of the heads' sizes. */
import type { Position } from '../../../ports/eventStore.js';
import type { TreeBuilder } from '../format/tiles.js';
import type { HeadToCheck } from '../heads/headsToCheck.js';
import { originOf } from '../heads/signedHeads.js';
import { type Findings, FindingsList, type WrongHead } from './verification.js';

/** Result of checking the heads up to a size of the tree, where none of them is wrong. */
export interface HeadsSoFar {
  readonly heads: number;
  readonly agreed: number;
  readonly largest: number;
  readonly verified: number;
  readonly unverified: number;
  readonly uncovered: Findings<WrongHead>;
  /** Position of the last checked head in the log; null where there was none yet. */
  readonly position: Position | null;
  /** Identities (`identityOf`) of the checked heads that were retained outside the log. */
  readonly outside: readonly string[];
}

/** Why a head is reported that no known key signed, and that says nothing about the log. */
export const UNCOVERED = 'no known key has signed it, nor a head that covers it';
const BEHIND_LARGER = 'it stands behind a larger one';
const CUT_OFF_BEHIND =
  'its own event is not in the log, where it was before the head was shown: the log was cut off there';

/** Why the tree does not have the root of a head. */
const reasonOf = ({ size, restored }: HeadToCheck, otherwise: string): string =>
  restored === undefined
    ? otherwise
    : `it covers ${size} events, and this log was restored from a backup of the first ${restored.events} of them`;

export const identityOf = ({ origin, size, root }: HeadToCheck): string =>
  `${origin} ${size} ${Buffer.from(root).toString('base64')}`;

export class HeadChecks {
  readonly wrong = new FindingsList<WrongHead>();
  heads = 0;
  /** Size of the last head whose root the tree had. */
  agreed = 0;
  /** Size of the largest valid head, whether the tree had its root or not. */
  largest = 0;
  /** First valid head that the tree did not agree with. */
  firstWrong: HeadToCheck | undefined;
  #firstNote: { readonly from: string; readonly size: number; why: string } | undefined;
  /** Size of the tree at which `check` must be called; infinite where no head is left. */
  nextSize = 0;
  readonly #inLog: AsyncIterator<HeadToCheck, void>;
  readonly #outside: HeadToCheck[];
  /** Number of heads that the log agrees with and a known key signed. */
  verified = 0;
  /** Number of heads that the log agrees with and none of the known keys signed. */
  unverified = 0;
  /** Heads without a known signer that no later verified head covers yet. */
  #uncovered = new FindingsList<WrongHead>();
  #coming: HeadToCheck | undefined;
  #started = false;
  #position: Position | null = null;
  readonly #judgedOutside: string[] = [];
  readonly #isOwn: (head: HeadToCheck) => boolean;
  /** Size of the last head of each origin whose root the tree had. */
  readonly #agreedOf = new Map<string, number>();
  /** Size of the largest head in the log that this log itself has signed. */
  #ownInLog = 0;
  /** Largest head that this log itself has signed and that is known from outside it. */
  #ownOutside: HeadToCheck | undefined;

  /**
   * @param inLog reads the heads in the log after a position
   * @param logId the log that is verified, which may also have heads of logs that it was copied from
   * @param judged result for heads that were checked before, which are skipped
   */
  constructor(
    inLog: (after: Position | undefined) => AsyncGenerator<HeadToCheck, void>,
    outside: readonly HeadToCheck[],
    logId: string,
    judged?: HeadsSoFar,
  ) {
    const own = originOf('', logId);
    this.#isOwn = ({ origin }) => origin.endsWith(own);
    this.#inLog = inLog(judged?.position ?? undefined);
    this.#outside = outside
      .filter((head) => judged?.outside.includes(identityOf(head)) !== true)
      .toSorted((a, b) => a.size - b.size);
    if (judged === undefined) return;
    this.heads = judged.heads;
    [this.agreed, this.largest] = [judged.agreed, judged.largest];
    [this.verified, this.unverified] = [judged.verified, judged.unverified];
    this.#uncovered.addAll(judged.uncovered);
    this.#position = judged.position;
    this.#judgedOutside.push(...judged.outside);
  }

  /**
   * Result for the heads checked so far. `undefined` where one of them is wrong, or none is left: the next head that is
   * signed may be smaller than the tree.
   */
  soFar(): HeadsSoFar | undefined {
    if (this.wrong.found > 0 || this.#cutOffBehind() !== undefined) return undefined;
    if (!Number.isFinite(this.nextSize)) return undefined;
    const { heads, agreed, largest, verified, unverified } = this;
    const [uncovered, outside] = [this.#uncovered.findings(), [...this.#judgedOutside]];
    return { heads, agreed, largest, verified, unverified, uncovered, position: this.#position, outside };
  }

  /** Checks the heads whose sizes the tree has reached. @throws UnavailableError */
  async check(tree: TreeBuilder): Promise<void> {
    if (!this.#started) await this.#take();
    this.#started = true;
    for (let head = this.#next(); head !== undefined && head.size <= tree.size; head = this.#next()) {
      this.#judge(head, tree);
      await this.#drop(head);
    }
  }

  /**
   * Reports heads larger than the log as wrong.
   * @param through position of the last event that was read: the log may have grown since
   */
  async finish(tree: TreeBuilder, through: Position | undefined): Promise<void> {
    for (let head = this.#next(); head !== undefined; head = this.#next()) {
      if (head.position === undefined || head.position <= (through ?? '')) {
        this.heads += 1;
        this.#note(head, head.fault ?? reasonOf(head, `it covers ${head.size} events, and the log has ${tree.size}`));
      }
      await this.#drop(head);
    }
    const { firstWrong: wrong } = this;
    if (
      this.#firstNote !== undefined &&
      wrong?.verified === true &&
      wrong.size <= (this.#agreedOf.get(wrong.origin) ?? 0)
    )
      this.#firstNote.why += `, and of these there is a head, too: a holder of the log's key has signed it twice`;
    const shown = this.#cutOffBehind();
    if (shown !== undefined) this.wrong.add({ from: shown.from, size: shown.size, why: CUT_OFF_BEHIND });
    this.wrong.addAll(this.#uncovered);
  }

  /** Head of this log, known from outside, whose own event is missing: it is in the log before the head is shown. */
  #cutOffBehind(): HeadToCheck | undefined {
    const shown = this.#ownOutside;
    return shown !== undefined && shown.size > this.#ownInLog ? shown : undefined;
  }

  #judge(head: HeadToCheck, tree: TreeBuilder): void {
    this.heads += 1;
    if (head.fault !== undefined) this.#note(head, head.fault);
    else if (head.size < tree.size) this.#note({ ...head, fault: BEHIND_LARGER }, BEHIND_LARGER);
    else if (!tree.root().equals(head.root))
      this.#note(head, reasonOf(head, `it is of other events than the log's first ${head.size}`));
    else {
      [this.agreed, this.largest] = [head.size, Math.max(this.largest, head.size)];
      this.#agreedOf.set(head.origin, head.size);
      this.#vouch(head);
    }
  }

  #vouch(head: HeadToCheck): void {
    const { from, size, position, verified } = head;
    if (verified === true) {
      this.verified += 1;
      if (position === undefined && this.#isOwn(head)) this.#ownOutside = head;
      this.#uncovered = new FindingsList();
    } else if (verified === false) {
      this.unverified += 1;
      this.#uncovered.add({ from, size, why: UNCOVERED });
    }
  }

  #note(head: HeadToCheck, why: string): void {
    const unsigned = head.verified === false ? 'no known key has signed it, and ' : '';
    const note = { from: head.from, size: head.size, why: `${unsigned}${why}` };
    this.wrong.add(note);
    // A head that is malformed or in another place, or that no known key signed, is no evidence about the log's events.
    if (head.fault !== undefined || head.verified === false) return;
    if (this.firstWrong === undefined) [this.firstWrong, this.#firstNote] = [head, note];
    this.largest = Math.max(this.largest, head.size);
  }

  #next(): HeadToCheck | undefined {
    const [outside] = this.#outside;
    const coming = this.#coming;
    return outside === undefined || (coming !== undefined && coming.size <= outside.size) ? coming : outside;
  }

  async #drop(head: HeadToCheck): Promise<void> {
    if (head === this.#coming) {
      this.#position = head.position ?? null;
      if (this.#isOwn(head)) this.#ownInLog = Math.max(this.#ownInLog, head.size);
      await this.#take();
    } else {
      this.#outside.shift();
      this.#judgedOutside.push(identityOf(head));
    }
    this.nextSize = this.#next()?.size ?? Number.POSITIVE_INFINITY;
  }

  async #take(): Promise<void> {
    this.#coming = (await this.#inLog.next()).value ?? undefined;
    this.nextSize = this.#next()?.size ?? Number.POSITIVE_INFINITY;
  }

  /** Releases the feed of heads. */
  async close(): Promise<void> {
    await this.#inLog.return?.();
  }
}
