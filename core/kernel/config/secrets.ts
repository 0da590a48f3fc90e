import { SECRET } from './schema.ts'

/** The name of a secret of the service `Secrets`. */
export const SECRET_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/

/** Secret names outside of the configuration, where `tokens` is a count and `credentials` a switch. */
const SECRET_TOO =
  /(^|[_-])(tokens|credentials?|[aA]pikeys?|passwd|passphrase|jwt)$|[a-z\d](Keys?|Tokens?|Secrets?|Passwords?|Cookies?|Authorization)$/
const verdicts = new Map<string, boolean>()

/** Whether values of this name must never be written. Cached, because the same few names appear in every log line. */
export function isSecret(name: string): boolean {
  const known = verdicts.get(name)
  if (known !== undefined) return known
  const verdict = SECRET.test(name) || SECRET_TOO.test(name)
  if (verdicts.size < 1000 && name.length <= 100) verdicts.set(name, verdict)
  return verdict
}

/** Names of flags and variables, which are often written without a separator: `--authtoken`, `PGPASSWORD`. */
const SECRET_FLAG = /(token|secret|passw(or)?d|passphrase|api-?key|[_-]pwd)s?$/i
/** Flags whose value is a credential by convention. */
const CREDENTIAL_FLAG = /^--?(u|user|proxy-user|auth|bearer|pass|pwd|pat)$/i
/** Flags whose value is a pair with a possible credential: a variable, a header. */
const PAIR_FLAG = /^(-e|-H|--env|--headers?)$/
/** A name and a value in one argument: `--api-key=x`, `Authorization: x`, `{"apiKey":"x"}`, `?token=x`. */
const PAIR = /([\w-]+)(["']?\s*[=:]\s*)/g
/** Credentials with a known format. */
const FORMS =
  /\b(?:[spr]k[-_][\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|hf_\w{20,}|npm_\w{30,}|eyJ[\w-]+\.[\w-]+\.[\w-]*)/g

/** Replaces each credential in command line arguments by `mask`. It recognizes credentials by flag, name or format. */
export const maskArguments = (args: readonly string[], mask: string): string[] =>
  args.map((arg, at) => maskArgument(arg, args[at - 1] ?? '', mask))

function maskArgument(arg: string, before: string, mask: string): string {
  const isValue = namesSecret(before) || CREDENTIAL_FLAG.test(before)
  if (isValue && !/^--[a-z]/i.test(arg)) return mask
  const [flag = '', value] = arg.split(/=(.*)/s, 2)
  if (value !== undefined && CREDENTIAL_FLAG.test(flag)) return `${flag}=${mask}`
  const isPair = PAIR_FLAG.test(before) || (value !== undefined && PAIR_FLAG.test(flag))
  const skipped = PAIR_FLAG.test(before) ? 0 : flag.length + 1
  for (const found of arg.matchAll(PAIR)) {
    const isMeant = namesSecret(found[1]!) || (isPair && found.index >= skipped)
    if (isMeant) return arg.slice(0, found.index + found[0].length) + mask
  }
  return arg
    .replace(/\b(bearer|basic)\s+\S+/gi, `$1 ${mask}`)
    .replace(/(:\/\/)[^/\s]+@/g, `$1${mask}@`)
    .replace(FORMS, mask)
}

const namesSecret = (word: string) => isSecret(word.replace(/^-+/, '')) || SECRET_FLAG.test(word)
