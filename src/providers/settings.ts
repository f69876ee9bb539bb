/**
 * The settings of the payment and notification providers (decisions 10). Faults name a variable and what it must be,
 * never a secret's value.
 */
import { createPrivateKey } from 'node:crypto';
import type { FcmSettings } from './notifications/fcm.js';
import type { TwilioSettings } from './notifications/twilio.js';
import type { StripeSettings } from './payments/stripeClient.js';

/** Who takes the money and who tells receivers. The settings of a provider are there where it is chosen. */
export interface ProviderSettings {
  readonly payments: 'stripe' | 'simulated';
  readonly notifications: 'real' | 'simulated';
  readonly stripe?: StripeSettings;
  /** What Stripe's webhooks are signed with; absent: none are taken. Secret. */
  readonly stripeWebhookSecret?: string;
  readonly twilio?: TwilioSettings;
  readonly fcm?: FcmSettings;
  /**
   * What was probably forgotten, for a warning at start: a real provider's secret is set, and nothing says whether it
   * is to be used.
   */
  readonly unsaid?: readonly string[];
}

/** Reads a variable; `undefined`: absent or empty. */
export type ReadText = (name: string) => string | undefined;

/** E.164. */
const PHONE_NUMBER = /^\+[1-9]\d{7,14}$/;
/** An alphanumeric sender: up to 11 letters, digits and spaces, not digits alone. */
const SENDER = /^(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11}$/;

/** Reads them. Adds every fault to `faults`. */
export function providerSettings(text: ReadText, faults: string[]): ProviderSettings {
  const chosen = <T extends string>(name: string, choices: readonly [T, 'simulated']): T | 'simulated' => {
    const value = text(name);
    if (value === undefined && text('EVENTSTORE_URL') !== undefined)
      faults.push(`${name} must be one of ${choices.join(', ')} where EVENTSTORE_URL is set`);
    const found = choices.find((choice) => choice === (value ?? 'simulated'));
    if (found === undefined) faults.push(`${name} must be one of ${choices.join(', ')}, not ${JSON.stringify(value)}`);
    return found ?? 'simulated';
  };
  const payments = chosen('PAYMENTS', ['stripe', 'simulated']);
  const notifications = chosen('NOTIFICATIONS', ['real', 'simulated']);
  return {
    payments,
    notifications,
    ...webhookSettings(text, faults, payments === 'stripe'),
    ...(payments === 'stripe' ? { stripe: stripeSettings(text, faults) } : {}),
    ...(notifications === 'real' ? { twilio: twilioSettings(text, faults), fcm: fcmSettings(text, faults) } : {}),
    ...unsaidSettings(text),
  };
}

/** A drill says `simulated` beside real secrets; who says nothing may think that they are used. */
function unsaidSettings(text: ReadText): Pick<ProviderSettings, 'unsaid'> {
  const unsaid = [
    { name: 'PAYMENTS', secrets: ['STRIPE_SECRET_KEY'], real: 'stripe', so: 'nobody is charged' },
    {
      name: 'NOTIFICATIONS',
      secrets: ['TWILIO_AUTH_TOKEN', 'FCM_SERVICE_ACCOUNT', 'FCM_PRIVATE_KEY'],
      real: 'real',
      so: 'nobody is told',
    },
  ].flatMap(({ name, secrets, real, so }) => {
    const set = text(name) === undefined ? secrets.filter((secret) => text(secret) !== undefined) : [];
    return set.length === 0
      ? []
      : [`${name} is not set though ${set.join(', ')} is, so ${so}: say ${name}=${real}, or ${name}=simulated`];
  });
  return unsaid.length === 0 ? {} : { unsaid };
}

/** A variable that must be there and look as it should. The value itself is never shown. */
function required(
  text: ReadText,
  faults: string[],
  name: string,
  why: string,
  looks: { readonly like: RegExp; readonly words: string },
): string {
  const value = text(name);
  if (value === undefined) faults.push(`${name} is required where ${why}`);
  else if (!looks.like.test(value)) faults.push(`${name} must be ${looks.words}`);
  return value ?? '';
}

function optionalUrl(text: ReadText, faults: string[], name: string, parts: 'origin' | 'whole'): string | undefined {
  const value = text(name);
  if (value === undefined) return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const plain =
    url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.search === '' && url.hash === '';
  if (plain && (parts === 'whole' || url.pathname === '/')) return parts === 'origin' ? url.origin : value;
  faults.push(
    `${name} must be an http or https address ${parts === 'origin' ? 'of scheme, host and port alone' : 'without query'}`,
  );
  return undefined;
}

function stripeSettings(text: ReadText, faults: string[]): StripeSettings {
  const looks = { like: /^(?:sk|rk)_\w+$/, words: 'a secret or restricted key of Stripe (sk_… or rk_…)' };
  const secretKey = required(text, faults, 'STRIPE_SECRET_KEY', 'PAYMENTS is stripe', looks);
  const apiUrl = optionalUrl(text, faults, 'STRIPE_API_URL', 'origin');
  return { secretKey, ...(apiUrl === undefined ? {} : { apiUrl }) };
}

/** With simulated payments it may be set as well: then webhooks are taken as Stripe would send them. */
function webhookSettings(
  text: ReadText,
  faults: string[],
  needed: boolean,
): Pick<ProviderSettings, 'stripeWebhookSecret'> {
  const name = 'STRIPE_WEBHOOK_SECRET';
  if (!needed && text(name) === undefined) return {};
  const looks = { like: /^whsec_\S+$/, words: 'the signing secret of a webhook endpoint of Stripe (whsec_…)' };
  return { stripeWebhookSecret: required(text, faults, name, 'PAYMENTS is stripe', looks) };
}

const REAL = 'NOTIFICATIONS is real';

function twilioSettings(text: ReadText, faults: string[]): TwilioSettings {
  const accountSid = required(text, faults, 'TWILIO_ACCOUNT_SID', REAL, {
    like: /^AC[0-9a-f]{32}$/i,
    words: 'the id of a Twilio account (AC and 32 hexadecimal digits)',
  });
  const authToken = required(text, faults, 'TWILIO_AUTH_TOKEN', REAL, {
    like: /^\S{16,}$/,
    words: 'the auth token of the Twilio account',
  });
  const from = text('TWILIO_FROM');
  const messagingServiceSid = text('TWILIO_MESSAGING_SERVICE_SID');
  if ((from === undefined) === (messagingServiceSid === undefined))
    faults.push(`TWILIO_FROM or TWILIO_MESSAGING_SERVICE_SID is required where ${REAL}, not both`);
  if (from !== undefined && !PHONE_NUMBER.test(from) && !SENDER.test(from))
    faults.push('TWILIO_FROM must be a number such as +447700900000 or a name of up to 11 letters and digits');
  if (messagingServiceSid !== undefined && !/^MG[0-9a-f]{32}$/i.test(messagingServiceSid))
    faults.push('TWILIO_MESSAGING_SERVICE_SID must be MG and 32 hexadecimal digits');
  const apiUrl = optionalUrl(text, faults, 'TWILIO_API_URL', 'origin');
  return {
    accountSid,
    authToken,
    ...(messagingServiceSid === undefined ? { from: from ?? '' } : { messagingServiceSid }),
    ...(apiUrl === undefined ? {} : { apiUrl }),
  };
}

/** What of a service account is used, from the file that Google gives or from a variable each. */
function fcmSettings(text: ReadText, faults: string[]): FcmSettings {
  const account = serviceAccount(text('FCM_SERVICE_ACCOUNT'), faults);
  const read: ReadText = account === undefined ? text : (name) => account[name];
  const anything = { like: /\S/, words: 'there' };
  const projectId = required(read, faults, 'FCM_PROJECT_ID', REAL, {
    like: /^[a-z0-9:.-]{3,64}$/,
    words: 'the id of a Firebase project',
  });
  const clientEmail = required(read, faults, 'FCM_CLIENT_EMAIL', REAL, {
    like: /^\S+@\S+$/,
    words: 'the e-mail address of a service account',
  });
  // One line in most places where variables are kept.
  const privateKey = required(read, faults, 'FCM_PRIVATE_KEY', REAL, anything).replaceAll('\\n', '\n');
  if (privateKey !== '' && !isRsaKey(privateKey))
    faults.push('FCM_PRIVATE_KEY must be an RSA key in PEM (PKCS #8), with its line ends as they are or as \\n');
  const apiUrl = optionalUrl(text, faults, 'FCM_API_URL', 'origin');
  const tokenUrl = optionalUrl(text, faults, 'FCM_TOKEN_URL', 'whole');
  return {
    projectId,
    clientEmail,
    privateKey,
    ...(apiUrl === undefined ? {} : { apiUrl }),
    ...(tokenUrl === undefined ? {} : { tokenUrl }),
  };
}

function serviceAccount(
  json: string | undefined,
  faults: string[],
): Readonly<Record<string, string | undefined>> | undefined {
  if (json === undefined) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    parsed = undefined;
  }
  if (!(parsed instanceof Object)) {
    faults.push('FCM_SERVICE_ACCOUNT must be the JSON of a service account');
    return undefined;
  }
  const field = (name: string): string | undefined => {
    const value = (parsed as Readonly<Record<string, unknown>>)[name];
    return typeof value === 'string' ? value : undefined;
  };
  return {
    FCM_PROJECT_ID: field('project_id'),
    FCM_CLIENT_EMAIL: field('client_email'),
    FCM_PRIVATE_KEY: field('private_key'),
  };
}

function isRsaKey(pem: string): boolean {
  try {
    return pem.includes('-----BEGIN PRIVATE KEY-----') && createPrivateKey(pem).asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
}
