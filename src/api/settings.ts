import type { ProviderSettings } from '../providers/settings.js';
import type { DailySettings } from './limits/dailyLimits.js';
import type { LimitSettings } from './limits/limits.js';

/** What the API is set to (docs/decisions.md#environment-variables). Times in seconds, unless their name ends in `Ms`. */
export interface ApiSettings
  extends
    LimitSettings,
    DailySettings,
    Pick<ProviderSettings, 'payments' | 'notifications' | 'stripe' | 'stripeWebhookSecret' | 'twilio'> {
  readonly accessTokenTtl: number;
  readonly refreshTokenTtl: number;
  readonly sessionMaxAge: number;
  /** Networks, as CIDR. */
  readonly trustedProxies: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly chargeWaitMs: number;
  readonly erasureDelay: number;
  readonly webhookPrivateAddresses: 'refuse' | 'allow';
  readonly webhookRefusedNetworks: readonly string[];
  readonly sealPublic: boolean;
  readonly sandbox: boolean;
  readonly appUrl?: string | undefined;
  readonly publicUrl?: string | undefined;
}
