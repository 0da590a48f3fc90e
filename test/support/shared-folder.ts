import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { runSvc } from './command.ts'

/** A svc home, and a project in a folder that others may have, with commands that run in the project. */
export interface SharedFolder extends AsyncDisposable {
  readonly base: string
  readonly home: string
  readonly project: string
  /** The file that configuration in code writes when it runs. */
  readonly marker: string
  /** Configuration in code; `more` stands before it. */
  code(more?: string): string
  write(name: string, text: string): Promise<string>
  svc(args: readonly string[], env?: Readonly<Record<string, string>>): ReturnType<typeof runSvc>
  /** Shows `chat.message_limit`, which the files of these tests set. */
  limit(env?: Readonly<Record<string, string>>): ReturnType<typeof runSvc>
}

/** The first word of what a command printed on the error stream. */
export const codeIn = ({ err }: { readonly err: string }): string | undefined => err.split(/\s/, 1)[0]

export async function openSharedFolder(): Promise<SharedFolder> {
  const base = await mkdtemp(join(tmpdir(), 'svc-trust-'))
  const [home, project, marker] = [join(base, 'home'), join(base, 'shared/mine'), join(base, 'executed')]
  await mkdir(project, { recursive: true })
  await mkdir(home, { mode: 0o700 })
  const svc: SharedFolder['svc'] = (args, env = {}) => runSvc(args, { home, cwd: project, env, share: true })
  return {
    base,
    home,
    project,
    marker,
    code: (more = '') =>
      `${more}import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(marker)}, '')\nexport default { chat: { message_limit: 7 } }\n`,
    async write(name, text) {
      const file = join(base, name)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, text)
      return file
    },
    svc,
    limit: env => svc(['config', 'show', 'chat.message_limit', '--json'], env),
    [Symbol.asyncDispose]: () => rm(base, { recursive: true, force: true }),
  }
}
