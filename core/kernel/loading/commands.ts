import type { Manifest } from './manifest.ts'

/** The key of `exports` whose module has the classes of the commands. */
export const COMMANDS_MODULE = './commands'

/** The commands that a manifest declares, by the words they are called with, `weather now`. */
export const commandsOf = ({ contributes = {} }: Pick<Manifest, 'contributes'>): string[] => {
  const { commands = [] } = contributes
  return (Array.isArray(commands) ? (commands as readonly string[]) : []).map(name =>
    name
      .trim()
      .split(/[\s:]+/)
      .join(' ')
  )
}
