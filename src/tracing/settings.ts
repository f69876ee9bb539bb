/**
 * Faults in OpenTelemetry's variables, for traces alone
 * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/,
 * https://opentelemetry.io/docs/specs/otel/protocol/exporter/). Its SDK passes over what it does not understand, and
 * says so at most in passing: nobody would learn that no trace arrives.
 */
import { accessSync, constants } from 'node:fs';
import { type Environment, EXPORTERS, exportersWanted, unknownExporters } from './exporters.js';

/** What is wrong with a value, in words to go on with after the variable's name; `undefined` for a good one. */
type Check = (value: string) => string | undefined;

const LEVELS = ['none', 'error', 'warn', 'info', 'debug', 'verbose', 'all'];
const PROTOCOLS = ['grpc', 'http/protobuf', 'http/json'];
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
];
const PROPAGATORS = ['tracecontext', 'baggage', 'b3', 'b3multi', 'jaeger', 'none'];

const oneOf =
  (known: readonly string[]): Check =>
  (value) =>
    known.includes(value) ? undefined : `must be one of ${known.join(', ')}, not ${JSON.stringify(value)}`;
const listOf =
  (known: readonly string[]): Check =>
  (value) => {
    const unknown = value
      .split(',')
      .map((one) => one.trim())
      .filter((one) => one !== '' && !known.includes(one));
    return unknown.length === 0
      ? undefined
      : `must be a list of ${known.join(', ')}; ${JSON.stringify(unknown.join())} is none of them`;
  };
const whole: Check = (value) =>
  /^\d{1,9}$/.test(value) ? undefined : `must be a whole number, not ${JSON.stringify(value)}`;
const share: Check = (value) =>
  /^(?:0(?:\.\d+)?|1(?:\.0+)?|\.\d+)$/.test(value)
    ? undefined
    : `must be a number from 0 to 1, not ${JSON.stringify(value)}`;
/** Never shown: it may hold a password. */
const address: Check = (value) =>
  URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
    ? undefined
    : 'must be an address that begins with http:// or https://';
/** Never shown: headers hold the keys of providers. */
const pairs: Check = (value) =>
  value.split(',').every((one) => one.trim() === '' || /^[^=\s]+\s*=/.test(one.trim()))
    ? undefined
    : 'must be a list of key=value, comma-separated';
const readable: Check = (value) => {
  try {
    accessSync(value, constants.R_OK);
    return undefined;
  } catch (error) {
    return `names ${JSON.stringify(value)}, which can't be read (${(error as NodeJS.ErrnoException).code})`;
  }
};

/** Said for all signals, or for traces alone. */
const forTraces = (name: string, check: Check): [string, Check][] => [
  [`OTEL_EXPORTER_OTLP_${name}`, check],
  [`OTEL_EXPORTER_OTLP_TRACES_${name}`, check],
];

const CHECKS: readonly (readonly [name: string, check: Check])[] = [
  ...forTraces('ENDPOINT', address),
  ...forTraces('PROTOCOL', oneOf(PROTOCOLS)),
  ...forTraces('HEADERS', pairs),
  ...forTraces('TIMEOUT', whole),
  ...forTraces('COMPRESSION', oneOf(['none', 'gzip'])),
  ...forTraces('CERTIFICATE', readable),
  ...forTraces('CLIENT_CERTIFICATE', readable),
  ...forTraces('CLIENT_KEY', readable),
  ...forTraces('INSECURE', oneOf(['true', 'false'])),
  ['OTEL_EXPORTER_ZIPKIN_ENDPOINT', address],
  ['OTEL_TRACES_SAMPLER', oneOf(SAMPLERS)],
  ['OTEL_TRACES_SAMPLER_ARG', share],
  ['OTEL_PROPAGATORS', listOf(PROPAGATORS)],
  ['OTEL_RESOURCE_ATTRIBUTES', pairs],
  ['OTEL_LOG_LEVEL', (value) => oneOf(LEVELS)(value.toLowerCase())],
  ...[
    'OTEL_BSP_SCHEDULE_DELAY',
    'OTEL_BSP_EXPORT_TIMEOUT',
    'OTEL_BSP_MAX_QUEUE_SIZE',
    'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
  ].map((name): [string, Check] => [name, whole]),
  ...[
    'OTEL_ATTRIBUTE_COUNT_LIMIT',
    'OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT',
    'OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT',
    'OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT',
  ].map((name): [string, Check] => [name, whole]),
  ...[
    'OTEL_SPAN_LINK_COUNT_LIMIT',
    'OTEL_SPAN_EVENT_COUNT_LIMIT',
    'OTEL_SPAN_ATTRIBUTE_PER_LINK_COUNT_LIMIT',
    'OTEL_SPAN_ATTRIBUTE_PER_EVENT_COUNT_LIMIT',
  ].map((name): [string, Check] => [name, whole]),
];

/** Every fault, by its variable's name; none where no traces are wanted. No value that may be secret stands there. */
export function telemetryFaults(env: Environment): readonly string[] {
  const disabled = env['OTEL_SDK_DISABLED']?.trim() ?? '';
  if (disabled !== '' && !/^(?:true|false)$/i.test(disabled))
    return [`OTEL_SDK_DISABLED must be true or false, not ${JSON.stringify(disabled)}`];
  if (exportersWanted(env).length === 0) return [];
  const unknown = unknownExporters(env);
  const exporters =
    unknown.length === 0
      ? []
      : [
          `OTEL_TRACES_EXPORTER must be a list of ${EXPORTERS.join(', ')}; ${JSON.stringify(unknown.join())} is none of them`,
        ];
  const others = CHECKS.flatMap(([name, check]) => {
    const value = env[name]?.trim() ?? '';
    const fault = value === '' ? undefined : check(value);
    return fault === undefined ? [] : [`${name} ${fault}`];
  });
  return [...exporters, ...others];
}
