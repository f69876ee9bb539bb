/**
 * What a diagnosis finds: one row a code, from the greatest harm to people and money to the least. A row says what the
 * finding means and the one command that mends it; a check that knows a better command gives it.
 */

/**
 * Who is harmed: buyers' money, people with a gift, clients and merchants, an auditor's evidence; `risk`: nobody yet.
 */
export const HARMS = ['money', 'people', 'partners', 'evidence', 'risk'] as const;

type Harm = (typeof HARMS)[number];

interface Row {
  readonly harm: Harm;
  readonly means: string;
  readonly command: string;
}

const RESTART = 'systemctl restart gift-commerce';
const STATUS = 'gift projections status';
const ENDPOINTS = '-H "Authorization: Bearer $OWNER_TOKEN" $API/api/v2/webhook-endpoints/';
/** Commands of an endpoint's owner, before the endpoint's id. */
export const ENABLE = `curl -X PATCH -H 'Content-Type: application/json' -d '{"disabled":false}' ${ENDPOINTS}`;
export const ROTATE = `curl -X POST ${ENDPOINTS}`;

const FINDINGS = {
  settings_wrong: {
    harm: 'money',
    means: 'The service does not start with these settings: nothing is sold or redeemed.',
    command: `correct it in the service's environment, and ${RESTART}`,
  },
  event_store_unavailable: {
    harm: 'money',
    means: 'Nothing is sold or redeemed until it is mended. Nothing that was acknowledged is lost.',
    command: RESTART,
  },
  key_store_unavailable: {
    harm: 'money',
    means: 'Phone numbers, names and messages can not be read, so nothing is sold or sent.',
    command: RESTART,
  },
  keys_wrong: {
    harm: 'money',
    means: 'The keys are not those of this log: no process starts, and no user or number is found.',
    command: `put the installation's key files back into DATA_DIR, and ${RESTART}`,
  },
  read_store_unavailable: {
    harm: 'money',
    means: 'Callers get 503 for most requests. Nothing is lost: all of it can be built anew from the log.',
    command: RESTART,
  },
  service_stopped: {
    harm: 'money',
    means: 'No process folds or charges: purchases that were taken wait, and callers get no answer.',
    command: 'systemctl start gift-commerce',
  },
  log_sealed: {
    harm: 'money',
    means: 'This log was copied to another engine, which takes the writes: here nothing is sold or redeemed.',
    command: 'set EVENTSTORE_URL to the engine that the log was copied to, and restart the service',
  },
  outward_work_held: {
    harm: 'money',
    means: 'The log was restored, copied or held: nothing is charged, refunded, sent or delivered.',
    command: 'gift resume --reason "<why>"',
  },
  process_managers_without_leader: {
    harm: 'money',
    means: 'Purchases are taken, but neither charged, issued nor sent until a process leads.',
    command: RESTART,
  },
  bus_unavailable: {
    harm: 'money',
    means: 'Purchases are taken, but charged and sent only once the bus is back.',
    command: RESTART,
  },
  settings_contradict: {
    harm: 'money',
    means: 'The service runs otherwise than its settings let one believe.',
    command: `correct it in the service's environment, and ${RESTART}`,
  },
  reconciliation_differs: {
    harm: 'money',
    means: 'What the provider has taken or given back is not what the log says: somebody has paid wrongly.',
    command: 'gift payments reconcile --day "<day>"',
  },
  provider_left_alone: {
    harm: 'money',
    means: 'Its work waits, and goes on by itself once it answers; after 24 hours of trouble it is parked.',
    command: 'gift parked groups',
  },
  parked_purchases: {
    harm: 'money',
    means: 'Purchases were given up: buyers paid, or wait to pay, and have no gifts.',
    command: 'gift parked list --process purchase',
  },
  parked_refunds: {
    harm: 'money',
    means: 'Money that was promised back has not been given back.',
    command: 'gift parked list --process refund',
  },
  parked_disputes: {
    harm: 'money',
    means: 'Gifts of disputed payments were not blocked or freed.',
    command: 'gift parked list --process dispute',
  },
  purchases_stuck: {
    harm: 'money',
    means: 'Buyers, or those who are to get money back, wait: a provider or an engine does not answer.',
    command: 'gift payments reconcile --day "$(date +%F)"',
  },
  sends_late: {
    harm: 'people',
    means: 'Gifts that were to be sent by now are not sent.',
    command: STATUS,
  },
  parked_notifications: {
    harm: 'people',
    means: 'Receivers were not told of their gifts, or nobody knows whether they were.',
    command: 'gift parked list --process notification',
  },
  read_models_without_leader: {
    harm: 'people',
    means: 'Callers see old answers, which grow older; writes decide from the log as ever.',
    command: RESTART,
  },
  read_model_behind: {
    harm: 'people',
    means: 'Callers see old answers, or 503 where they send Gift-Position.',
    command: STATUS,
  },
  read_model_invalid: {
    harm: 'people',
    means: 'The read store does not fit the log; a process with the role projector builds the read model anew.',
    command: STATUS,
  },
  documents_quarantined: {
    harm: 'people',
    means: 'These documents answer 503: an event could not be folded, or what is stored is damaged.',
    command: 'gift projections verify NAME',
  },
  rebuild_failed: {
    harm: 'people',
    means: 'The build in use goes on to serve; the new one is not finished and waits for a person.',
    command: 'gift projections rebuild NAME --abort',
  },
  rebuild_waits: {
    harm: 'people',
    means: 'The build in use goes on to serve; nobody makes the new one.',
    command: 'gift projections rebuild NAME --reason "<why>"',
  },
  part_failing: {
    harm: 'people',
    means: 'This part of a process fails again and again; its work waits.',
    command: RESTART,
  },
  limit_reached: {
    harm: 'people',
    means: 'These callers are answered 429 until their windows end: an app in a loop, a guesser, or a limit too low.',
    command: `where their pace is rightful, raise the setting (docs/limits.md), and ${RESTART}`,
  },
  part_not_ready: {
    harm: 'people',
    means: 'The service does not answer that it is ready, so a balancer sends it no requests.',
    command: RESTART,
  },
  not_known: {
    harm: 'people',
    means: 'This could not be looked at, so it may be well or not.',
    command: 'gift diagnose',
  },
  webhooks_stalled: {
    harm: 'partners',
    means: 'Events are due, and nothing is done about them: the process that delivers must start again.',
    command: RESTART,
  },
  webhook_secret_lost: {
    harm: 'partners',
    means: 'Nothing is sent to it, since nothing can be signed, until its owner makes a new secret.',
    command: `${ROTATE}ENDPOINT/secret`,
  },
  webhooks_late: {
    harm: 'partners',
    means: 'Events wait though the endpoint answers; they are delivered later, in order.',
    command: RESTART,
  },
  webhook_endpoint_failing: {
    harm: 'partners',
    means: 'Its owner gets no events. They are tried for three days; the owner sees the attempts and mends it.',
    command: 'gift webhooks attempts ENDPOINT',
  },
  webhook_endpoint_disabled: {
    harm: 'partners',
    means: 'Its owner gets no events until it enables it again, and asks for what it missed (recover).',
    command: `${ENABLE}ENDPOINT`,
  },
  log_altered: {
    harm: 'evidence',
    means: 'Somebody, or a disk, changed what was signed: an auditor must know what, and since when.',
    command: 'gift audit verify',
  },
  tree_failing: {
    harm: 'evidence',
    means: 'No heads are signed, so that nobody can prove what came since the last one.',
    command: 'gift audit verify',
  },
  head_old: {
    harm: 'evidence',
    means: 'What came since the last signed head can not be proven yet.',
    command: RESTART,
  },
  witness_missing: {
    harm: 'evidence',
    means: 'Only this installation vouches for the last head until the witness cosigns one.',
    command: 'ask those who run the witness; the next head asks it again',
  },
  reconciliation_old: {
    harm: 'risk',
    means: 'Nobody knows whether what the provider charged is what the log has.',
    command: 'gift payments reconcile --day "$(date -d yesterday +%F)"',
  },
  backup_old: {
    harm: 'risk',
    means: 'With this machine all purchases since the last backup would be lost.',
    command: 'gift backup "$BACKUPS/$(date +%F).log"',
  },
  disk_short: {
    harm: 'risk',
    means: 'Once the disk of DATA_DIR is full, nothing is sold or redeemed.',
    command: 'df -h "$DATA_DIR"',
  },
  clocks_apart: {
    harm: 'risk',
    means: 'Expiry, tokens and times in reports differ by the process that answers.',
    command: 'timedatectl set-ntp true',
  },
  links_dead: {
    harm: 'risk',
    means: 'Links in messages begin with an address that nobody can open.',
    command: `set PUBLIC_URL to where callers reach the service, and ${RESTART}`,
  },
} as const satisfies Readonly<Record<string, Row>>;

export type FindingCode = keyof typeof FINDINGS;

export const FINDING_CODES = Object.keys(FINDINGS) as readonly FindingCode[];

/** A finding as a check gives it: the table has the rest. */
export interface Found {
  readonly code: FindingCode;
  readonly what: string;
  /** Replaces the table's command. */
  readonly command?: string;
}

export interface Finding {
  readonly code: FindingCode;
  readonly harm: Harm;
  /** What is wrong, with names, numbers and times. */
  readonly what: string;
  /** What it means for people and money. */
  readonly means: string;
  /** The one command that mends it, or shows what to mend. */
  readonly command: string;
}

/** The findings in order of harm; those of one code as they were found. */
export function inOrder(found: readonly Found[]): Finding[] {
  return found
    .toSorted((one, other) => FINDING_CODES.indexOf(one.code) - FINDING_CODES.indexOf(other.code))
    .map(({ code, what, command }) => ({
      code,
      harm: FINDINGS[code].harm,
      what,
      means: FINDINGS[code].means,
      command: command ?? FINDINGS[code].command,
    }));
}

/** The findings of settings with which nothing can be opened: nothing else is known then. */
export const settingsFindings = (faults: readonly string[]): Finding[] =>
  inOrder(faults.map((what) => ({ code: 'settings_wrong', what })));
