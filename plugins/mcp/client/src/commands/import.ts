import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { Args, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { oneLine } from '@svc/plugin-kit'
import { messageOf, shownPath } from '@svc/core'
import { importInvalid } from '../errors.ts'
import { placementOf } from '../registry/client-options.ts'
import { addToFile, homeFile } from '../registry/home-file.ts'
import { importServers } from './foreign-config.ts'
import { configuredServers, reloadServers, contextOf } from './shared.ts'

/** `svc mcp import <file or ->`: adds the servers of another client's file, except those whose names exist. */
export class McpImport extends SvcCommand {
  static override summary = "Add the MCP servers of another client's file"
  static override description = 'Reads {"mcpServers": {...}}, the format of many MCP clients.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> ~/client/mcp.json',
    'cat mcp.json | <%= config.bin %> <%= command.id %> -',
  ]
  static override args = {
    file: Args.string({ description: 'File, or - for the standard input', required: true, ignoreStdin: true }),
  }
  static override flags = JSON_FLAG

  async run(): Promise<number> {
    const { args, flags } = await this.parse(McpImport)
    const { entries, notes } = importServers(await contentOf(args.file))
    const known = (await configuredServers(this)).map(one => one.entry.name)
    const names = entries.map(one => one.name)
    const fresh = entries.filter((one, at) => !known.includes(one.name) && names.indexOf(one.name) === at)
    const taken = entries
      .filter(one => !fresh.includes(one))
      .map(one => `${one.name}: left out: a server of this name exists already`)
    const file = homeFile(this.home)
    if (fresh.length > 0) await addToFile(file, fresh)
    const added = fresh.map(one => one.name)
    const all = [...notes, ...taken]
    if (flags.json) this.print(JSON.stringify({ added, notes: all, file }))
    else this.print(added.length === 0 ? 'no server was added' : `added to ${shownPath(file)}: ${added.join(', ')}`)
    for (const note of flags.json ? [] : all) this.note(oneLine(note, 300))
    const open = fresh.filter(one => placementOf(one) === 'all rights').map(one => one.name)
    if (open.length > 0)
      this.note(`with all rights of svc, unless you set sandbox: true in their entries, run: ${open.join(', ')}`)
    return added.length === 0 ? (entries.length === 0 ? 1 : 0) : reloadServers(this, contextOf(this, 'mcp import'))
  }
}

async function contentOf(file: string): Promise<string> {
  if (file === '-') return text(process.stdin)
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw importInvalid(`the file cannot be read: ${messageOf(error)}`)
  }
}
