/** `gift audit evidence`: the latest signed heads and their witnesses (docs/support.md#evidence-at-a-glance). */
import { Command } from 'commander';
import { type EvidenceView, evidenceView, openTileFolder } from '../../ops/evidence/index.js';
import { treeDir } from '../../service/tree.js';
import { withLog } from '../engines.js';
import { outputOptions } from '../exports.js';
import { examples, jsonLine, tableLines, textLines } from '../output.js';
import { type Terminal, writeLines } from '../terminal.js';

export function auditEvidenceCommand(terminal: Terminal): Command {
  const command = new Command('evidence')
    .summary('show the latest signed heads and their witnesses')
    .description(
      'Shows the latest heads that were signed over the log, the latest first, and which witnesses have cosigned the published one. Whether the log is what was signed, gift audit verify tells.',
    );
  return outputOptions(command, { csv: false })
    .addHelpText('after', examples('gift audit evidence', 'gift audit evidence --json'))
    .action(async ({ json }: { readonly json?: true }) => {
      const view = await withLog(terminal, async ({ events, config }) =>
        evidenceView(
          events,
          openTileFolder(treeDir(config), events.logId),
          config.sealWitnesses.map(({ key }) => key),
        ),
      );
      await writeLines(terminal.stdout, json === true ? [jsonLine(view)] : describe(view, terminal.stdout.columns));
    });
}

function describe(
  { origin, heads, not_cosigned_by, uncovered_since, last_verified }: EvidenceView,
  columns: number | undefined,
): string[] {
  if (origin === null) return ['nothing is signed yet'];
  const rows = heads.map(({ at, size, root, published, cosigned_by }) => [
    at,
    size ?? 'not a head',
    root ?? '',
    published ? 'published' : '',
    cosigned_by.map(({ witness }) => witness).join(' '),
  ]);
  const covered = uncovered_since === null ? 'every event has a head' : `events since ${uncovered_since} have no head`;
  const missing = not_cosigned_by.length === 0 ? '' : `; not cosigned by ${not_cosigned_by.join(', ')}`;
  return [
    ...tableLines(['signed', 'events', 'root', '', 'cosigned by'], rows, columns),
    '',
    ...textLines(`${origin}: ${covered}${missing}; ${verified(last_verified)}; next: gift audit verify`, columns),
  ];
}

function verified(last: EvidenceView['last_verified']): string {
  if (last === null) return 'no verification is recorded';
  return `found as it was signed at ${last.at} by ${last.by ?? 'somebody'} (${last.events} events)`;
}
