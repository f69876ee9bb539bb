/** One spelling for each username: what is compared, hashed and kept unique. */

/** The spelling: compatibility-normalised (NFKC) and in lower case, so that `ＡDA` and `ada` are one name. It is personal as the name itself. */
export function normaliseUsername(username: string): string {
  return username.normalize('NFKC').toLowerCase();
}
