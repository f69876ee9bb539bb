import type { ProviderSettings } from '../providers/settings.js';
import type { DailySettings } from './limits/dailyLimits.js';
import type { LimitSettings } from './limits/limits.js';

/** The settings of the API (docs/settings.md). Times are seconds, but for names in `Ms`. */
export interface ApiSettings
  extends
    LimitSettings,
    DailySettings,
    Pick<ProviderSettings, 'payments' | 'notifications' | 'stripe' | 'stripeWebhookSecret' | 'twilio'> {
  readonly accessTokenTtl: number;
  readonly refreshTokenTtl: number;
  readonly sessionMaxAge: number;
  /** Networks of proxies, as CIDR. */
  readonly trustedProxies: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly chargeWaitMs: number;
  readonly erasureDelay: number;
  readonly webhookPrivateAddresses: 'refuse' | 'allow';
  readonly webhookRefusedNetworks: readonly string[];
  readonly sealPublic: boolean;
  readonly sealWitnesses: readonly { readonly key: string }[];
  readonly sandbox: boolean;
  readonly appUrl?: string | undefined;
  readonly publicUrl?: string | undefined;
}
