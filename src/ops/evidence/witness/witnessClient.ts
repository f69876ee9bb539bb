/**
 * Client of a log's witnesses (c2sp.org/tlog-witness): requests cosignatures, and the latest cosigned checkpoint.
 */
import { hash } from 'node:crypto';
import { pause } from '../../../lib/async/pause.js';
import { shortened } from '../../../lib/quotedText.js';
import { timeoutSignal } from '../../../lib/world.js';
import {
  type AddCheckpoint,
  type Checkpoint,
  cosignatureVerifier,
  formatAddCheckpoint,
  parseCheckpoint,
  type ParsedCheckpoint,
} from '../format/checkpoint.js';
import { keyName } from '../format/noteKeys.js';
import { fromDecimal, MalformedEvidenceError, UntrustedNoteError } from '../format/parsing.js';
import {
  formatSignature,
  type NoteSignature,
  type NoteVerifier,
  openNote,
  parseNote,
  parseSignatures,
  withSignatures,
} from '../format/signedNote.js';

export interface WitnessAddress {
  /** The witness' address, without the path `/add-checkpoint`. */
  readonly url: string;
  /** The verifier key of the witness' cosignatures, as text. */
  readonly key: string;
}

export interface SignedCheckpoint extends Checkpoint {
  /** The checkpoint as a note signed by the log, without cosignatures. */
  readonly note: string;
  /** The consistency proof from a smaller size to this one. */
  readonly consistency: (fromSize: number) => Promise<readonly Uint8Array[]>;
}

/** The outcome of a request for a cosignature. `witness` is the name of the witness' key. */
export type Cosigning = { readonly witness: string } & (
  | { readonly outcome: 'cosigned'; readonly signature: NoteSignature }
  /** The witness has cosigned a larger tree: this log was restored to an earlier time, or has continued elsewhere. */
  | { readonly outcome: 'ahead'; readonly size: number }
  /** The witness has cosigned a tree that this checkpoint does not continue. */
  | { readonly outcome: 'inconsistent'; readonly size: number; readonly reason: string }
  /** The witness can't be reached, or its answer breaks the protocol. */
  | { readonly outcome: 'failed'; readonly reason: string }
);

export interface Patience {
  /** Milliseconds for all attempts at one witness together. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

const MAX_ATTEMPTS = 4;
const PAUSE_MS = 250;
const MAX_ANSWER_BYTES = 65_536;
const MAX_REASON = 200;

/** The answer of a witness to the question which checkpoint of a log it has cosigned last. */
type LatestWord =
  /** `note` has all signatures of the checkpoint; only the witness' own is verified, not the log's. */
  | { readonly outcome: 'cosigned'; readonly checkpoint: ParsedCheckpoint; readonly note: string }
  | { readonly outcome: 'nothing' }
  | { readonly outcome: 'failed'; readonly reason: string };

export interface WitnessClient {
  /** Name of the witness' key. */
  readonly name: string;
  /** Requests a cosignature, with repeats within the timeout. @throws only the errors of `consistency` */
  cosign(checkpoint: SignedCheckpoint, patience: Patience): Promise<Cosigning>;
  latest(origin: string, patience: Patience): Promise<LatestWord>;
}

/** A client for one witness. @throws MalformedEvidenceError for a key that is not a cosignature key */
export function witnessClient({ url, key }: WitnessAddress): WitnessClient {
  const verifier = cosignatureVerifier(key);
  const witness = verifier.name;
  const prefix = url.replace(/\/+$/, '');
  /** Latest cosigned sizes that this process knows, by the log's origin: a known size avoids a first answer of 409. */
  const sizes = new Map<string, number>();

  /**
   * Sends one request. `retry` is the reason of a failure that a later attempt may not have. `undefined` requests a
   * repeat at once, since the witness has answered with the size that it has cosigned last.
   */
  async function attempt(
    { origin, size, note }: SignedCheckpoint,
    { oldSize, consistency }: Pick<AddCheckpoint, 'oldSize' | 'consistency'>,
    signal: AbortSignal,
  ): Promise<Cosigning | { readonly retry: string | undefined }> {
    const body = formatAddCheckpoint({ oldSize, consistency, checkpoint: note });
    const answer = await ask(`${prefix}/add-checkpoint`, { method: 'POST', body, signal });
    if ('failed' in answer) return { retry: answer.failed };
    const { status, text } = answer;
    switch (status) {
      case 200: {
        const signature = cosignatureIn(note, text, verifier);
        sizes.set(origin, size);
        return { witness, outcome: 'cosigned', signature };
      }
      case 409: {
        // With a right old size the root must differ: for that case the standard defines no body.
        const saysOther = /^\d+\n?$/.test(text) && Number(text) !== oldSize;
        if (oldSize === size && !saysOther)
          return { witness, outcome: 'inconsistent', size, reason: 'it has cosigned another tree of this size' };
        const known = fromDecimal(text.replace(/\n$/, ''), "a witness' size");
        sizes.set(origin, known);
        return known > size ? { witness, outcome: 'ahead', size: known } : { retry: undefined };
      }
      case 422:
        return { witness, outcome: 'inconsistent', size: oldSize, reason: shortened(text.trim(), MAX_REASON) };
      case 400:
      case 403:
      case 404:
        return { witness, outcome: 'failed', reason: `it answered ${status}: ${shortened(text.trim(), MAX_REASON)}` };
      default:
        return { retry: `it answered ${status}` };
    }
  }

  return {
    name: witness,
    async cosign(checkpoint, patience) {
      const signal = within(patience);
      let reason = 'it cosigns other checkpoints meanwhile';
      for (let attempts = 1; attempts <= MAX_ATTEMPTS && !signal.aborted; attempts++) {
        const oldSize = Math.min(sizes.get(checkpoint.origin) ?? 0, checkpoint.size);
        const consistency = await checkpoint.consistency(oldSize);
        const done = await attempt(checkpoint, { oldSize, consistency }, signal).catch(malformed);
        if ('outcome' in done) return { witness, ...done };
        if (done.retry === undefined) continue;
        reason = done.retry;
        if (attempts < MAX_ATTEMPTS) await pause(PAUSE_MS * 2 ** (attempts - 1), signal);
      }
      return { witness, outcome: 'failed', reason };
    },
    async latest(origin, patience) {
      const answer = await ask(`${prefix}/${hash('sha256', origin)}/checkpoint`, { signal: within(patience) });
      if ('failed' in answer) return { outcome: 'failed', reason: answer.failed };
      if (answer.status === 404) return { outcome: 'nothing' };
      if (answer.status !== 200) return { outcome: 'failed', reason: `it answered ${answer.status}` };
      try {
        const checkpoint = parseCheckpoint(openNote(answer.text, [verifier]).body);
        return checkpoint.origin === origin
          ? { outcome: 'cosigned', checkpoint, note: answer.text }
          : { outcome: 'failed', reason: `it answered with the log ${checkpoint.origin}` };
      } catch (error) {
        return malformed(error);
      }
    },
  };
}

function malformed(error: unknown): { readonly outcome: 'failed'; readonly reason: string } {
  if (error instanceof MalformedEvidenceError || error instanceof UntrustedNoteError)
    return { outcome: 'failed', reason: error.message };
  throw error;
}

/**
 * The witness' valid cosignature; signatures of other keys are ignored.
 * @throws UntrustedNoteError, MalformedEvidenceError
 */
function cosignatureIn(note: string, lines: string, verifier: NoteVerifier): NoteSignature {
  const own = parseSignatures(lines).filter((found) => keyName(found) === keyName(verifier));
  const [signature] = openNote(withSignatures(`${parseNote(note).body}\n`, own), [verifier]).signatures;
  return signature as NoteSignature;
}

const within = ({ timeoutMs, signal }: Patience): AbortSignal =>
  AbortSignal.any([timeoutSignal(timeoutMs), ...(signal === undefined ? [] : [signal])]);

type Answer = { readonly status: number; readonly text: string } | { readonly failed: string };

async function ask(url: string, request: RequestInit): Promise<Answer> {
  try {
    const response = await fetch(url, { ...request, redirect: 'error' });
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of response.body ?? []) {
      parts.push(part as Uint8Array);
      bytes += (part as Uint8Array).length;
      if (bytes > MAX_ANSWER_BYTES) return { failed: `it answered with more than ${MAX_ANSWER_BYTES} bytes` };
    }
    return { status: response.status, text: Buffer.concat(parts).toString() };
  } catch (error) {
    if (request.signal?.aborted === true) return { failed: 'it has not answered in time' };
    const { message, cause } = error as Error;
    return { failed: `it can't be reached (${(cause as NodeJS.ErrnoException | undefined)?.code ?? message})` };
  }
}

interface Cosigned {
  /** The checkpoint with the cosignatures received, in the order of the witnesses. */
  readonly note: string;
  /** The outcome of each witness' request, in the order of the witnesses. */
  readonly outcomes: readonly Cosigning[];
}

/** Resolves within the timeout, even if witnesses do not answer. @throws the errors of `checkpoint.consistency` */
export async function collectCosignatures(
  witnesses: readonly WitnessClient[],
  checkpoint: SignedCheckpoint,
  patience: Patience,
): Promise<Cosigned> {
  const outcomes = await Promise.all(witnesses.map((witness) => witness.cosign(checkpoint, patience)));
  const lines = outcomes.map((one) => (one.outcome === 'cosigned' ? formatSignature(one.signature) : ''));
  return { note: checkpoint.note + lines.join(''), outcomes };
}
