import { SECRET } from './schema.ts'

const HIDDEN = '[secret]'
/** Redacting shorter values would hide ordinary words. */
const SHORTEST = 8
/** The same holds for values of fewer different characters, such as blanks. */
const FEWEST = 4
/**
 * A part of a value between line breaks, quotes and backslashes is redacted on its own from this length on. So a private key is
 * recognized line by line, and a value that was quoted several times.
 */
const SHORTEST_PART = 12

/** The registered values with the number of their registrations. */
const registered = new Map<string, number>()
/** All forms of the registered values, the longest first, because a form can contain another. */
let forms: readonly string[] = []

/** Values whose registration has ended, the oldest first. An error can be printed after the host that caused it was closed. */
const ended = new Set<string>()
const MOST_ENDED = 100

/**
 * Keeps a value out of the output of this process: its log, its errors, its HTTP answers and its stored runs. Returns the end of
 * the registration. A value of fewer than 8 characters, or of fewer than 4 different ones, is not redacted.
 */
export function registerSecret(value: string): () => void {
  if (value.length < SHORTEST || new Set(value).size < FEWEST) return () => {}
  registered.set(value, (registered.get(value) ?? 0) + 1)
  if (registered.get(value) === 1) collect()
  let isOver = false
  return () => {
    if (isOver) return
    isOver = true
    const left = (registered.get(value) ?? 1) - 1
    if (left > 0) return void registered.set(value, left)
    registered.delete(value)
    ended.delete(value)
    ended.add(value)
    const [oldest] = ended
    if (oldest !== undefined && ended.size > MOST_ENDED) ended.delete(oldest)
    collect()
  }
}

function collect(): void {
  const all = [...new Set([...registered.keys(), ...ended])].flatMap(formsOf)
  forms = [...new Set(all)].filter(form => form.length >= SHORTEST).toSorted((a, b) => b.length - a.length)
}

/** Replaces the registered values in a text, also where they are quoted, encoded for a URL, or in Base64. */
export function redactText(text: string): string {
  if (forms.length === 0) return text
  let clean = text
  for (const form of forms) if (clean.includes(form.slice(0, HEAD))) clean = withoutForm(clean, form)
  return clean
}

/** A longer value is recognized by its first characters, because it can be cut: error messages and log lines have limits. */
const HEAD = 64

function withoutForm(text: string, form: string): string {
  if (form.length <= HEAD) return text.replaceAll(form, HIDDEN)
  const head = form.slice(0, HEAD)
  const pieces: string[] = []
  let from = 0
  for (let at = text.indexOf(head); at >= 0; at = text.indexOf(head, from)) {
    let length = HEAD
    while (length < form.length && text[at + length] === form[length]) length++
    pieces.push(text.slice(from, at))
    from = at + length
  }
  return [...pieces, text.slice(from)].join(HIDDEN)
}

/** Replaces the registered values in an error that another program prints. It changes the error, because its class must stay. */
export function redactError(error: unknown): void {
  if (forms.length === 0 || typeof error !== 'object' || error === null) return
  for (const key of ['message', 'stack', 'cause', ...Object.keys(error)]) {
    const value: unknown = Reflect.get(error, key)
    if (value instanceof Error) redactError(value)
    else if (Array.isArray(value) && value.some(item => item instanceof Error)) value.forEach(redactError)
    else if (value !== undefined && redactData(value) !== value) Reflect.set(error, key, redactData(value))
  }
}

/** Replaces the registered values in all texts and keys of plain data. Data without them is returned as it is. */
export function redactData<T>(value: T): T {
  return forms.length === 0 ? value : (redacted(value, new Map()) as T)
}

/** Deeper data is replaced by a placeholder. Data from another process has at most 1,000 levels. */
const DEEPEST = 1_000

/** `seen` has the copies of objects that were already visited, because data of a plugin can contain itself. */
function redacted(value: unknown, seen: Map<object, unknown>, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || value instanceof Date) return value
  if (seen.has(value)) return seen.get(value)
  if (depth > DEEPEST) return '[deep]'
  seen.set(value, value)
  const clean = Array.isArray(value) ? redactedList(value, seen, depth) : redactedRecord(value, seen, depth)
  seen.set(value, clean)
  return clean
}

function redactedList(list: readonly unknown[], seen: Map<object, unknown>, depth: number): unknown {
  const items = list.map(item => redacted(item, seen, depth + 1))
  return items.some((item, at) => item !== list[at]) ? items : list
}

function redactedRecord(record: object, seen: Map<object, unknown>, depth: number): unknown {
  const entries = Object.entries(record)
  const clean = entries.map(([key, item]): [string, unknown] => [redactText(key), redacted(item, seen, depth + 1)])
  const isSame = clean.every(([key, item], at) => key === entries[at]![0] && item === entries[at]![1])
  return isSame ? record : Object.fromEntries(clean)
}

const inJson = (text: string) => JSON.stringify(text).slice(1, -1)

function formsOf(value: string): string[] {
  const parts = value
    .split(/["\\\p{Cc}]+/u)
    .map(part => part.trim())
    .filter(part => part.length >= SHORTEST_PART)
  const bytes = Buffer.from(value)
  return [
    ...[value, ...parts].flatMap(text => [text, inJson(text), inJson(inJson(text)), encodeURIComponent(text.toWellFormed())]),
    bytes.toString('hex'),
    ...[0, 1, 2].flatMap(shift => inBase64(bytes, shift)),
  ]
}

/** The part of the Base64 of a text that is the same whatever stands before and after the value, `shift` bytes into a group. */
function inBase64(bytes: Buffer, shift: number): string[] {
  const bits = (shift + bytes.length) * 8
  const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
  const own = text.slice(Math.ceil((shift * 8) / 6), Math.floor(bits / 6))
  return [own, own.replaceAll('+', '-').replaceAll('/', '_')]
}

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
