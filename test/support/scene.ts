import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FAILURE_KINDS, type FakeUpstream } from '@svc/testing'
import { newHome, startService } from './service.ts'
import { type Wire, WIRES } from './wires.ts'

const WEATHER = fileURLToPath(new URL('./weather.ts', import.meta.url))

const keyEnv = (type: string) => `KEY_OF_${type.replace('-', '_').toUpperCase()}`
/** Their streams begin, and fail in the middle where their wire can say so. */
export const BROKEN = ['cut', 'midway']
const OTHERS = ['plain', 'rounds', 'hundred', 'endless', 'silent', 'stalled', 'no-such-model', ...BROKEN]
const modelsOf = (wire: Wire) => [...OTHERS, ...FAILURE_KINDS.map(wire.failing)]

export interface SceneOptions {
  readonly args?: readonly string[]
  /** The type of the entry whose key stands in a file. */
  readonly keyInFile?: string
  /** Of the section `chat`. */
  readonly limits?: object
  readonly variables?: Readonly<Record<string, string>>
}

/** A real service with an entry for each wire, named as its type, before a fake of its server. */
export async function openScene(
  types: readonly string[],
  { args = [], keyInFile, limits = {}, variables = {} }: SceneOptions = {}
) {
  const home = await newHome()
  const upstreams = new Map<string, FakeUpstream>()
  for (const type of types) upstreams.set(type, await WIRES[type]!.open())
  const entries = types.map(type => {
    const wire = WIRES[type]!
    const key = type === keyInFile ? { api_key_file: join(home, 'key') } : { api_key_env: keyEnv(type) }
    const own = { type, ...key, models: modelsOf(wire) }
    return [`my-${type}`, { ...own, ...wire.entry(upstreams.get(type)!.url) }] as const
  })
  // what a provider says goes out at once, and who leaves does not come back: retries and resumed streams have tests of their own
  const chat = { policy: { attempts: 1, breaker_failures: 0 }, resume_s: 0, ...limits }
  const config = { plugins: [WEATHER], providers: Object.fromEntries(entries), chat }
  await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
  if (keyInFile !== undefined) await writeFile(join(home, 'key'), `${WIRES[keyInFile]!.key}\n`)
  const named = types.filter(type => type !== keyInFile)
  const env = { ...variables, ...Object.fromEntries(named.map(type => [keyEnv(type), WIRES[type]!.key])) }
  const service = await startService({ home, env, args })
  return {
    home,
    env,
    service,
    upstreamOf: (type: string) => upstreams.get(type)!,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      for (const upstream of upstreams.values()) await upstream.close()
      await rm(home, { recursive: true, force: true })
    },
  }
}
