/** `gift diagnose`: what is wrong, in order of harm, with or without a running service. */
import { Command } from 'commander';
import { DataFileError } from '../adapters/embedded/sqlite.js';
import { EngineError, NoAnswerError } from '../lib/engineError.js';
import { diagnose, type Finding, settingsFindings } from '../ops/diagnosis/index.js';
import { openServiceStatus } from '../ops/status/serviceStatus.js';
import { UnavailableError } from '../ports/unavailable.js';
import { PROJECTIONS } from '../projections/index.js';
import { type Config, ConfigError, loadConfig } from '../service/config.js';
import { engineSources } from '../service/diagnosis.js';
import { partsOf, serviceOf } from '../service/diagnosisParts.js';
import { type OpenedLog, type OpenedStores, withLog, readStores } from './engines.js';
import { outputOptions } from './exports.js';
import { blockLines, examples, jsonLine } from './output.js';
import { CommandFailure, type Terminal, writeLines } from './terminal.js';

/** Command of a finding that itself says what to change. */
const DO_WHAT_IT_SAYS = 'do what it says, and then: gift diagnose';
/** Columns where the terminal does not say how many it has. */
const COLUMNS = 80;

export function diagnoseCommand(terminal: Terminal): Command {
  const command = new Command('diagnose')
    .summary('what is wrong, what it means, and the command that mends it')
    .description(
      `Looks at all that the service knows of itself, and says what is wrong, the greatest harm to people and money first, what it means, and the one command that mends it.
It works with and without a running service, and changes nothing. What could not be looked at is named, too. Takes two seconds. Exit code 0: nothing is wrong; 1: something is.`,
    );
  return outputOptions(command)
    .addHelpText('after', examples('gift diagnose', 'gift diagnose --json'))
    .action(async ({ json }: { readonly json?: true }) => {
      const findings = await findingsOf(terminal);
      await writeLines(terminal.stdout, json === true ? findings.map(jsonLine) : inWords(findings, terminal));
      if (findings.length > 0)
        throw new CommandFailure(`${findings.length} ${findings.length === 1 ? 'thing is' : 'things are'} wrong`);
    });
}

function inWords(findings: readonly Finding[], { stdout }: Terminal): string[] {
  if (findings.length === 0) return ['nothing is wrong'];
  return blockLines(
    findings.map(({ code, harm, what, means, command }) => ({
      head: `${code} (${harm}): ${what}`,
      paragraphs: [means, `→ ${command}`],
    })),
    stdout.columns ?? COLUMNS,
  );
}

type Engine = 'event store' | 'read store' | 'key store' | 'bus';
type Opened = Partial<Pick<OpenedStores, 'store' | 'models'>> & OpenedLog;

async function findingsOf(terminal: Terminal): Promise<readonly Finding[]> {
  let config: Config;
  try {
    config = loadConfig(terminal.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return settingsFindings(error.faults);
  }
  const refused = new Map<Engine, UnavailableError>();
  const look = async (opened?: Opened): Promise<readonly Finding[]> => diagnosed(terminal, config, refused, opened);
  return whereOpened(
    async (work) => readStores(terminal, work),
    async (why) => {
      refused.set('read store', why);
      return whereOpened(
        async (work) => withLog(terminal, work, { logOnly: true }),
        async (ofLog) => {
          refused.set('event store', ofLog);
          return look();
        },
        look,
      );
    },
    look,
  );
}

/** Opens engines for `work`. Where they can't be opened, `otherwise` gets the reason. */
async function whereOpened<O, T>(
  open: (work: (opened: O) => Promise<T>) => Promise<T>,
  otherwise: (why: UnavailableError) => Promise<T>,
  work: (opened: O) => Promise<T>,
): Promise<T> {
  let isOpen = false;
  try {
    return await open(async (opened) => {
      isOpen = true;
      return work(opened);
    });
  } catch (error) {
    if (isOpen) throw error;
    return otherwise(notOpened(error));
  }
}

/** Errors whose messages say what to change: a restart does not mend these. */
const SAYING_WHAT_TO_DO = [EngineError, DataFileError, CommandFailure] as const;

/** @throws an error that is not about an engine that can't be opened */
function notOpened(error: unknown): UnavailableError {
  if (error instanceof UnavailableError && error.publicReason !== undefined) return error;
  const known = [UnavailableError, ...SAYING_WHAT_TO_DO].some((type) => error instanceof type);
  if (!known) throw error;
  const { message } = error as Error;
  return new UnavailableError(message, { cause: error, publicReason: message });
}

async function diagnosed(
  { stderr }: Terminal,
  config: Config,
  refused: Map<Engine, UnavailableError>,
  opened: Opened | undefined,
): Promise<readonly Finding[]> {
  const refusal = (name: 'event store' | 'read store'): UnavailableError =>
    refused.get(name) ?? new UnavailableError(`the ${name} is not open`);
  const log = (): Opened => {
    if (opened === undefined) throw refusal('event store');
    return opened;
  };
  const read = (): Pick<OpenedStores, 'store' | 'models'> => {
    const { store, models } = log();
    if (store === undefined || models === undefined) throw refusal('read store');
    return { store, models };
  };
  const service = serviceOf(config, log);
  const findings = await diagnose({
    ...engineSources({ log, read, config, projections: PROJECTIONS }),
    parts: async () =>
      partsOf(config, service, {
        log,
        read,
        refusedBy(part, error) {
          const why = notOpened(error);
          // The service goes on by itself once a server is there.
          if (!(error instanceof NoAnswerError)) refused.set(part, why);
          return why;
        },
        isLogOpen: opened !== undefined,
        // The command was called for another folder, or by another user, than the service's, and can't tell of it.
        isLogKnown: !(refused.get('event store')?.cause instanceof CommandFailure),
      }),
    async status() {
      const status = openServiceStatus({ events: log().events, store: read().store, projections: PROJECTIONS });
      try {
        return await status.look();
      } finally {
        await status.close();
      }
    },
    metrics: service.metrics,
    onFault: (error) => stderr.write(`gift: a check failed: ${String(error)}\n`),
  });
  const remedies = [...refused.values()].flatMap(({ cause, message }) =>
    SAYING_WHAT_TO_DO.some((type) => cause instanceof type) ? [message] : [],
  );
  return findings.map((finding) =>
    remedies.some((remedy) => finding.what.endsWith(remedy)) ? { ...finding, command: DO_WHAT_IT_SAYS } : finding,
  );
}
