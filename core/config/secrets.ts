import { SECRET } from './schema.ts'

/** Names beside those of the configuration, where `tokens` are a count and `credentials` a switch. */
const SECRET_TOO =
  /(^|[_-])(tokens|credentials?|[aA]pikeys?|passwd|passphrase|jwt)$|[a-z\d](Keys?|Tokens?|Secrets?|Passwords?|Cookies?|Authorization)$/
const verdicts = new Map<string, boolean>()

/** Whether what stands under a name is never written. Remembered: the same few names stand in every line of a log. */
export function isSecret(name: string): boolean {
  const known = verdicts.get(name)
  if (known !== undefined) return known
  const verdict = SECRET.test(name) || SECRET_TOO.test(name)
  if (verdicts.size < 1000 && name.length <= 100) verdicts.set(name, verdict)
  return verdict
}
