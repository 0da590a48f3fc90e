import { JSON_FLAG, SvcCommand, table } from '@svc/cli/command'
import type { SecretInfo } from '@svc/core/contracts'
import { openSecrets } from './open.ts'
import { infoRecord } from './stored.ts'
import { referencePlaces } from './uses.ts'

const HEAD = ['NAME', 'SOURCE', 'STATE', 'CHANGED', 'KEY', 'READ BY']

/** `svc secrets list`: lists the secrets without their values, and what may read them. */
export class SecretsList extends SvcCommand {
  static override summary = 'List the secrets without their values, and what may read them'
  static override examples = ['<%= config.bin %> <%= command.id %>']
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { flags } = await this.parse(SecretsList)
    const { secrets, ctx } = await openSecrets(this, 'list')
    const all = await secrets.list(ctx)
    const granted = await this.granted('secrets')
    const places = referencePlaces(await this.setting())
    const readers = ({ name }: SecretInfo) => ({
      plugins: granted.flatMap(({ plugin, names }) => (names.includes(name) ? [plugin] : [])),
      settings: places.flatMap(([item, path]) => (item === name ? [path] : [])),
    })
    if (flags.json) {
      const shown = all.map(info => ({ ...infoRecord(info), ...readers(info) }))
      return this.print(JSON.stringify({ secrets: shown }))
    }
    if (all.length === 0) return this.note('there are no secrets; run `svc secrets set <name>` to store a secret')
    const cells = (info: SecretInfo) => {
      const { plugins, settings } = readers(info)
      const changed = info.changedAt === undefined ? '' : new Date(info.changedAt).toISOString()
      const by = [...plugins, ...settings.map(path => `setting ${path}`)].join(', ')
      return [info.name, info.source, info.state, changed, info.keyId ?? '', by === '' ? 'nothing' : by]
    }
    this.print(table([HEAD, ...all.map(cells)]))
  }
}
