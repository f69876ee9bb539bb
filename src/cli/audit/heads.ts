/** The signed heads that commands hold a log against, and the keys that verify them. */
import { EvidenceError } from '../../ops/evidence/index.js';
import type { Config } from '../../service/config.js';
import { treeHost } from '../../service/tree.js';
import { nameOf, readInputText } from '../fileNames.js';
import { type CommandFailure, type Terminal, usageFailure } from '../terminal.js';

/** @param files of the option --checkpoint @throws CommandFailure */
export async function retainedHeads(
  terminal: Terminal,
  files: readonly string[],
): Promise<readonly { readonly from: string; readonly note: string }[]> {
  const heads: { readonly from: string; readonly note: string }[] = [];
  for (const file of files)
    heads.push({
      from: nameOf(file),
      note: await readInputText(terminal, file).catch((error: CommandFailure) => {
        throw usageFailure(`--checkpoint: ${error.message}`);
      }),
    });
  return heads;
}

/** A verifier of the key that an option gives. @throws CommandFailure for a malformed key */
export function verifierOf<V>(option: string, key: string, parse: (key: string) => V): V {
  try {
    return parse(key);
  } catch (error) {
    if (error instanceof EvidenceError) throw usageFailure(`${option}: ${error.message}`);
    throw error;
  }
}

/** The witnesses of SEAL_WITNESSES. One whose latest head is left out is named on standard error. */
export const witnessesOf = (
  config: Pick<Config, 'publicUrl' | 'sealWitnesses'>,
  { stderr }: Terminal,
): { readonly addresses: Config['sealWitnesses']; readonly host: string; onMissing(message: string): void } => ({
  addresses: config.sealWitnesses,
  host: treeHost(config),
  onMissing: (message) => void stderr.write(`gift: ${message}\n`),
});
