/** Whether what comes from outside in a provider's name is the provider's. */

/** What was told is not signed by the provider, or too long ago. Nothing of it can be trusted. */
export class SignatureError extends Error {
  override readonly name = 'SignatureError';
}
