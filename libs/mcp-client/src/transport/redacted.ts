/** Fields of a form that hold a credential. */
const SECRET_FIELDS = ['client_secret', 'code', 'code_verifier', 'refresh_token', 'client_assertion']
/** Shorter values are not credentials, and may be part of a word. */
const SHORTEST = 6
const MARK = '[secret]'

/** The credentials in a request: its key or token, and the secrets of a form. An error message must not repeat them. */
export function credentialsOf(headers: Headers, keyHeader: string | undefined, body: unknown): string[] {
  const authorization = headers.get('authorization') ?? ''
  const [kind = '', credential = ''] = authorization.split(/\s+(.*)/s)
  const basic = /^basic$/i.test(kind) ? Buffer.from(credential, 'base64').toString().split(':').map(decoded) : []
  const key = keyHeader === undefined ? null : headers.get(keyHeader)
  const form = typeof body === 'string' || body instanceof URLSearchParams ? new URLSearchParams(body) : undefined
  const fields = SECRET_FIELDS.map(name => form?.get(name))
  const all = [credential, ...basic.slice(1), key, ...fields].filter(one => typeof one === 'string' && one.length >= SHORTEST)
  const forms = (all as string[]).flatMap(one => [one, encodeURIComponent(one), JSON.stringify(one).slice(1, -1)])
  // the longest first: one may hold another
  return [...new Set(forms)].sort((a, b) => b.length - a.length)
}

const decoded = (text: string) => new URLSearchParams(`v=${text}`).get('v') ?? text

/** Removes credentials from an error response: its text goes into logs, health and answers. A token response stays as it is. */
export async function withoutCredentials(response: Response, credentials: readonly string[], isForm: boolean): Promise<Response> {
  if (response.body === null || credentials.length === 0 || (response.status < 400 && !isForm)) return response
  const text = await response.text()
  const isToken = response.status < 400 && /"access_token"\s*:/.test(text)
  const clean = isToken ? text : credentials.reduce((all, one) => all.replaceAll(one, MARK), text)
  return new Response(clean, { status: response.status, headers: response.headers })
}
