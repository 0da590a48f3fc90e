import type { Command } from '@oclif/core'
import { Chat } from './commands/chat.ts'
import { ConfigCheck } from './commands/config-check.ts'
import { ConfigShow } from './commands/config-show.ts'
import { contributed } from './commands/contributed.ts'
import { Plugins } from './commands/plugins.ts'
import { Serve } from './commands/serve.ts'
import { contributedCommands } from './contributed.ts'
import { isOwn } from './summaries.ts'

const OWN = { chat: Chat, 'config:check': ConfigCheck, 'config:show': ConfigShow, plugins: Plugins, serve: Serve }

/** svc's own commands need no plugin's manifest: they work with a broken configuration too. */
const others = isOwn(process.argv[2] ?? '') ? [] : await contributedCommands()

/** All commands, as oclif takes them. */
export const COMMANDS: Readonly<Record<string, Command.Class>> = {
  ...OWN,
  ...Object.fromEntries(others.map(one => [one.id, contributed(one)])),
}
