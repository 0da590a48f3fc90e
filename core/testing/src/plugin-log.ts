import type { RefusalKind } from '@svc/core/contracts'
import { type ConfiguredServer, LOOKED_AT, otherPortOf, type OwnConfig, settingOf } from '@svc/runtime/isolation'

/** Reads the log of a host for what happens to an isolated plugin. */
export interface LogReader {
  write(line: string): void
  /** Denied accesses and deaths of its process, each once, as a sentence. */
  problems(): readonly string[]
  warnings(): readonly string[]
}

/** A line about an isolated plugin, unchecked. */
interface LogLine {
  readonly plugin?: string
  readonly of?: string
  readonly kind?: RefusalKind
  readonly what?: string
  readonly variable?: string
  readonly by?: string
  readonly how?: string
  readonly from?: string
  readonly hint?: string
  readonly msg?: string
}

const GONE = /^the process of an isolated plugin has ended/
/** Lines of its standard error stream that an error repeats. */
const MOST_LINES = 20

/** Creates the destination of a log. `configs`: the configuration of the plugin. */
export function createLogReader(plugin: string, configs: readonly OwnConfig[] = []): LogReader {
  const [problems, warnings, written] = [new Set<string>(), new Set<string>(), [] as string[]]
  const settingIn = (what: string) => configs.map(config => settingOf(what, config)).find(setting => setting !== undefined)
  const otherIn = (what: string) => configs.map(config => otherPortOf(what, config)).find(server => server !== undefined)
  const take = (line: LogLine) => {
    const { kind, what, hint, variable, by, how, from, msg = '' } = line
    if (line.of === plugin && kind !== undefined && what !== undefined)
      (kind === 'read' ? warnings : problems).add(
        refusalText(kind, { what, setting: settingIn(what), other: otherIn(what), message: msg, hint })
      )
    if (line.plugin !== plugin) return
    if (msg === LOOKED_AT) warnings.add(lookText(String(variable), String(by)))
    if (from === 'stderr' && written.length < MOST_LINES) written.push(msg)
    if (GONE.test(msg)) problems.add([`its process ended: ${how}`, ...written].join('\n  '))
  }
  return {
    write(line) {
      if (line.includes(plugin)) take(JSON.parse(line) as LogLine)
    },
    problems: () => [...problems],
    warnings: () => [...warnings],
  }
}

/** A variable that only a dependency reads. */
export const lookText = (name: string, by: string): string => looksText([name], by)

const looksText = (names: readonly string[], by: string): string =>
  `${by} looks at the ${names.length === 1 ? 'variable' : 'variables'} ${names.join(', ')}: ignore this, or, if the plugin needs one, add it to "permissions": { "env": [{ "name": "${names[0]}", "optional": true }] }`

const LOOK = /^(\S+) looks at the variable (\w+): /

/** Joins the warnings about variables that one dependency reads; the others stay. */
export function joinLooks(warnings: readonly string[]): string[] {
  const looks = warnings.flatMap(text => {
    const [, by, name] = LOOK.exec(text) ?? []
    return by !== undefined && name !== undefined ? [{ by, name }] : []
  })
  const byPackage = Map.groupBy(looks, ({ by }) => by)
  return [
    ...warnings.filter(text => !LOOK.test(text)),
    ...[...byPackage].map(([by, all]) => looksText([...new Set(all.map(({ name }) => name))].sort(), by)),
  ]
}

interface Refusal {
  readonly what: string
  /** The setting with this host. */
  readonly setting: string | undefined
  /** A setting with this host and another port. */
  readonly other: ConfiguredServer | undefined
  readonly message: string
  readonly hint: string | undefined
}

const refusalText = (kind: RefusalKind, { what, setting, other, message, hint = '' }: Refusal): string => {
  if (kind === 'env') return `it reads the variable ${what}: add it to "permissions": { "env": ["${what}"] }`
  if (kind === 'network' && other !== undefined)
    return `it asks ${what}, but the setting ${other.setting} is ${other.host}: connect to the port of the setting, correct the setting, or add ${what} to "permissions": { "network": [] }`
  if (kind === 'network' && !/^(udp|dns):/.test(what))
    return `it asks ${what}: add it to "permissions": { "network": ["${setting === undefined ? what : `<${setting}>`}"] }`
  return `${message}. ${hint}`
}
