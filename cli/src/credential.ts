/** What `svc tokens create` gives out begins so. */
const TOKEN = /^svc_/

/** The header that carries what `SVC_API_KEY` holds: an API key, or a token of `svc tokens create`. */
export function credentialHeaders(key: string | undefined): Record<string, string> {
  if (!key) return {}
  return TOKEN.test(key) ? { authorization: `Bearer ${key}` } : { 'x-api-key': key }
}
