import { styleText } from 'node:util'
import { clipped, INTERRUPTED, milliseconds, named, oneLine, table } from '@svc/cli/command'
import { withTimeout } from '@svc/core'
import type { CommandContext, ServerChoice } from '@svc/core/contracts'
import { type CommandCatalog, failureText, type Health, type Hello, openCatalog } from '../catalog/open.ts'
import { providerUnknown } from '../errors.ts'

interface TestOptions extends ServerChoice {
  readonly name?: string | undefined
  /** Also sends a test message. */
  readonly chat: boolean
  readonly model?: string | undefined
  /** Time limit of each probe and each message. */
  readonly limitMs: number
  readonly json: boolean
}

/** The outcome for one provider. */
interface Tested {
  readonly name: string
  readonly probe: Health
  readonly hello?: Hello | { readonly error: string }
}

/** `svc providers test`. Resolves with the exit code: 1 if a provider fails. Throws PROVIDER_UNKNOWN. */
export async function testProviders(command: CommandContext, asked: TestOptions): Promise<number> {
  const { signal } = command
  const catalog = await openCatalog(command, asked)
  try {
    const tested = await testAll(catalog, asked, signal)
    command.print(asked.json ? jsonOf(catalog.of, tested) : testedText(catalog.of, tested))
    return tested.every(isGood) && tested.length > 0 ? 0 : 1
  } catch (error) {
    if (signal.aborted) return INTERRUPTED
    throw error
  }
}

async function testAll(catalog: CommandCatalog, asked: TestOptions, signal: AbortSignal): Promise<Tested[]> {
  const known = (await catalog.providers(signal)).map(({ name }) => name)
  if (asked.name !== undefined && !known.includes(asked.name)) throw providerUnknown(asked.name, known)
  const names = asked.name === undefined ? known : [asked.name]
  const health = await catalog.health(signal, asked.limitMs, names)
  return await Promise.all(
    names.map(async name => {
      const probe = health[name] ?? { healthy: false, error: 'there is no probe result' }
      return asked.chat ? { name, probe, hello: await helloFrom(catalog, name, asked, signal) } : { name, probe }
    })
  )
}

async function helloFrom(
  catalog: CommandCatalog,
  name: string,
  { model, limitMs }: TestOptions,
  signal: AbortSignal
): Promise<Tested['hello']> {
  const late = () => new Error(`no reply within ${limitMs} ms`)
  try {
    return await withTimeout(limitMs, ending => catalog.hello(name, model, ending), { signal, late })
  } catch (error) {
    signal.throwIfAborted()
    return { error: failureText(error) }
  }
}

const isGood = ({ probe, hello }: Tested) => probe.healthy && !(hello && 'error' in hello)

const rounded = (ms: number | undefined) => (ms === undefined ? null : Number(ms.toFixed(1)))

const jsonOf = (of: string, tested: readonly Tested[]) =>
  JSON.stringify(
    {
      from: of,
      ok: tested.length > 0 && tested.every(isGood),
      providers: tested.map(({ name, probe: { ms, ...probe }, hello }) => ({
        name,
        ...probe,
        ...(ms === undefined ? {} : { probe_ms: rounded(ms) }),
        ...(hello ? { chat: helloFacts(hello) } : {}),
      })),
    },
    null,
    2
  )

const helloFacts = (hello: NonNullable<Tested['hello']>) =>
  'error' in hello
    ? { success: false, error: hello.error }
    : {
        success: true,
        model: hello.model,
        first_token_ms: rounded(hello.firstMs),
        duration_ms: rounded(hello.ms),
        output_tokens: hello.output,
      }

function testedText(of: string, tested: readonly Tested[]): string {
  const withChat = tested.some(item => item.hello)
  const head = ['PROVIDER', 'PROBE', ...(withChat ? ['MODEL', 'FIRST TOKEN', 'REPLY', 'TOKENS'] : [])]
  const rows = tested.map(({ name, probe, hello }) => [name, probeText(probe), ...(hello ? helloCells(hello) : [])])
  const [first = '', ...lines] = table([head, ...rows]).split('\n')
  const paint = (colour: 'bold' | 'green' | 'red', text: string) => styleText(colour, text, { stream: process.stdout })
  const shown = lines.map((line, at) => paint(isGood(tested[at]!) ? 'green' : 'red', line))
  const errors = tested.flatMap(item => errorsOf(item).map(text => paint('red', named(item.name, clipped(oneLine(text), 300)))))
  return [`Asked ${of}`, '', paint('bold', first), ...shown, ...errors].join('\n')
}

const probeText = ({ healthy, ms }: Health) => `${healthy ? 'answers' : 'fails'}${ms === undefined ? '' : ` ${milliseconds(ms)}`}`

const helloCells = (hello: NonNullable<Tested['hello']>) =>
  'error' in hello
    ? ['fails', '', '', '']
    : [
        oneLine(hello.model),
        hello.firstMs === undefined ? 'no text' : milliseconds(hello.firstMs),
        milliseconds(hello.ms),
        String(hello.output),
      ]

const errorsOf = ({ probe, hello }: Tested) => [
  ...(probe.error === undefined ? [] : [probe.error]),
  ...(hello && 'error' in hello ? [hello.error] : []),
]
