import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { FRUGAL, SVC } from '../support/entry.ts'
import { PROGRAMS } from '../support/tutorial-programs.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PLUGIN = 'svc-plugin-greet'

describe('docs/tutorials/first-plugin.md', function () {
  this.timeout(300_000)

  it('leads from nothing to a package that can be published, command by command', async () => {
    const outputs = await followed('ts')
    expect(outputs.size, 'commands').to.equal(9)
    expect(outputs.get(CALL)).to.include('Hello, Ada!')
    expect(outputs.get(CHAT)).to.include('greet answered: Hello, Ada!')
    expect(outputs.get('svc config schema --config greet.yaml > svc.schema.json')).to.include('"most"')
    expect(outputs.get(`svc plugins publish ${PLUGIN} --dry-run`)).to.include('dist/index.js')
  })

  it('does so in JavaScript, with the line that it gives for it and without what it leaves out', async () => {
    const outputs = await followed('js')
    expect(outputs.size, 'commands').to.equal(7)
    expect(outputs.get(CALL)).to.include('Hello, Ada!')
    expect(outputs.get(`svc plugins publish ${PLUGIN} --dry-run`)).to.include('src/tool.js')
  })
})

const CALL = 'svc tools call greet \'{"text": "Ada"}\' --config greet.yaml'
const CHAT = 'svc chat \'/tool greet {"text": "Ada"}\' --config greet.yaml'

/** What each command of the page has written, run in one empty folder. */
async function followed(language: 'ts' | 'js'): Promise<ReadonlyMap<string, string>> {
  const text = await readFile(join(ROOT, 'docs/tutorials/first-plugin.md'), 'utf8')
  const place = await mkdtemp(join(tmpdir(), 'svc-tutorial-'))
  const outputs = new Map<string, string>()
  // npm install would ask a registry: what it brings lies in this repository
  const leftOut = language === 'ts' ? ['npm install'] : ['npm install', 'npm test', 'npm run build']
  try {
    if (language === 'ts') await symlink(join(ROOT, 'node_modules'), join(place, 'node_modules'))
    await writeFile(join(place, 'greet.yaml'), block(text, 'yaml'))
    const commands = [...text.matchAll(/^```sh\n([^]*?)^```$/gm)].flatMap(([, lines = '']) => lines.trim().split('\n'))
    let folder = place
    for (const command of commands) {
      if (command.startsWith('cd ')) folder = join(folder, command.slice('cd '.length))
      if (command === 'npm run build') await change(join(place, PLUGIN), { text, language })
      if (command.startsWith('cd ') || leftOut.includes(command)) continue
      const isJs = language === 'js' && command.startsWith('svc plugins new')
      outputs.set(command, await run(isJs ? `${command} --js` : command, { folder, home: join(place, 'home') }))
    }
    return outputs
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}

const block = (text: string, language: string) => new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'm').exec(text)![1]!

/** Replaces the tool and the expected text of its test, as the page says. */
async function change(
  folder: string,
  { text, language }: { readonly text: string; readonly language: 'ts' | 'js' }
): Promise<void> {
  const file = join(folder, `src/tool.${language}`)
  const made = await readFile(file, 'utf8')
  const [first = '', ...rest] = block(text, 'ts').split('\n')
  const [, plain = ''] = /In\s+`src\/tool\.js`\s+its\s+first\s+line\s+is\s+`([^`]+)`/.exec(text)!
  await writeFile(
    file,
    made.replace(/export const createGreet[^]*/, () => [language === 'js' ? plain : first, ...rest].join('\n'))
  )
  const spec = join(folder, `test/greet.test.${language}`)
  await writeFile(spec, (await readFile(spec, 'utf8')).replace("'cba'", "'Hello, abc!'"))
}

async function run(command: string, { folder, home }: { readonly folder: string; readonly home: string }): Promise<string> {
  const words = command
    .replace(/ > \S+$/, '')
    .match(/'[^']*'|\S+/g)!
    .map(word => word.replaceAll("'", ''))
  const svc = [process.execPath, ...SVC, ...words.slice(1)]
  const [file = '', ...args] = PROGRAMS[command] ?? svc
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== 'NODE_TEST_CONTEXT'))
  const { stdout } = await promisify(execFile)(file, args, {
    cwd: folder,
    env: { ...env, ...FRUGAL, SVC_HOME: home },
    maxBuffer: 1 << 26,
  }).catch((error: { stdout: string; stderr: string }) =>
    Promise.reject(new Error(`${command}\n${error.stdout}\n${error.stderr}`))
  )
  return stdout
}
