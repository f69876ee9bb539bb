import { Command } from 'commander';
import { erasureLine, storedErasures } from '../../ops/people/index.js';
import { findHashKey } from '../../service/keys.js';
import { refuseUnlessKeysFit } from '../../service/keysCheck.js';
import { withLog } from '../engines.js';
import { cliAccess } from '../exports.js';
import { examples } from '../output.js';
import { type Terminal, writeLines } from '../terminal.js';

export function erasuresCommand(terminal: Terminal): Command {
  return new Command('erasures')
    .summary('list all erasures, to be kept elsewhere')
    .description(
      `One JSON object a line, with who was erased (ids alone), by whom, why and when. Keep the list where no backup of the log or the key store is restored over it: where both are restored, only gift people erase-again with this list knows of later erasures.`,
    )
    .addHelpText('after', examples('gift people erasures > /elsewhere/erasures.jsonl'))
    .action(async () => runErasures(terminal));
}

async function runErasures(terminal: Terminal): Promise<void> {
  await withLog(terminal, async (log) => {
    await refuseUnlessKeysFit(log, () => findHashKey(log.config));
    const lines: string[] = [];
    for await (const erasure of storedErasures(log.keys)) lines.push(erasureLine(erasure));
    await cliAccess(log.events).shown('gift people erasures', {}, { personal: false, reason: null }, lines.length);
    await writeLines(terminal.stdout, lines);
  });
}
