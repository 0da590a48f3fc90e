import { type SvcError, svcError } from '@svc/core'

export interface BaseUrl {
  readonly origin: string
  /** Without the slash at its end: a path that begins with one can follow. */
  readonly path: string
}

/** Takes a base URL: http or https, without credentials, query and fragment. Throws PROVIDER_CONFIG with what to write instead. */
export function checkBaseUrl(text: string, provider: string): BaseUrl {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw wrong(provider, `must be a URL that begins with http:// or https://${shown(text)}`, hintOf(text))
  if (url.username !== '' || url.password !== '')
    throw wrong(provider, 'must have no user and no password in it', 'name the key in api_key_env or api_key_file instead')
  if (url.search !== '' || url.hash !== '' || /[?#]$/.test(text))
    throw wrong(provider, 'must have no query and no fragment', 'leave out what follows "?" or "#"')
  return { origin: url.origin, path: url.pathname.replace(/\/+$/, '') }
}

/** The error does not repeat a text that can contain credentials. */
const shown = (text: string) => (/[@?#]/.test(text) || text.length > 100 ? '' : `, was ${JSON.stringify(text)}`)

const hintOf = (text: string) =>
  /^[\w.-]+(:\d+)?(\/[\w./-]*)?$/.test(text)
    ? `write http://${text}${text.includes('/') ? '' : '/v1'}`
    : 'write for example http://localhost:11434/v1'

const wrong = (provider: string, message: string, hint: string): SvcError =>
  svcError('PROVIDER_CONFIG', `providers.${provider}.base_url ${message}`, { where: `providers.${provider}.base_url`, hint })
