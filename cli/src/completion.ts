import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Config } from '@oclif/core'
import { messageOf } from '@svc/core'
import { type CommandSource, sourcesFor } from './contributed.ts'
import { pluginsFor } from './oclif.ts'
import { COMPLETION } from './summaries.ts'
import { oneLine } from './command/text.ts'

/** The exit code of a change of the installed plugins. After one that went well the scripts of completion, where there are some, are written anew: they name the commands of plugins. */
export async function withCompletion(change: Promise<number>): Promise<number> {
  const code = await change
  if (code === 0) await refresh().catch(tell)
  return code
}

async function refresh(): Promise<void> {
  // where no scripts are, no plugin is described for them
  if (!existsSync(join((await configFor([])).cacheDir, 'autocomplete'))) return
  const config = await configFor(await sourcesFor([COMPLETION]))
  await config.runCommand('autocomplete:create')
}

const configFor = async (sources: readonly CommandSource[]) =>
  Config.load(await pluginsFor([COMPLETION], sources, () => Promise.reject(new Error('nothing runs here'))))

const tell = (error: unknown) =>
  void process.stderr.write(
    `note: completion was not refreshed: ${oneLine(messageOf(error))}; run \`svc autocomplete --refresh-cache\`\n`
  )
