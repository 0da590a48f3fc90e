import { chmod, mkdir, readFile, symlink } from 'node:fs/promises'
import { delimiter, dirname } from 'node:path'
import { expect } from 'chai'
import { type Box, boxed, refusal, withSandbox } from './support/sandbox.ts'

const SERVER = `import { readFileSync, writeFileSync } from 'node:fs'
import { word } from 'dep'
const attempt = work => { try { return work() } catch (error) { return error.code } }
const { spawnSync } = await import('node:child_process')
console.log(JSON.stringify({
  word,
  child: attempt(() => spawnSync('true').status),
  sqlite: await import('node:sqlite').then(() => 'there', error => error.code),
  beside: attempt(() => readFileSync('/var/lib/dpkg/status', 'utf8')),
}))
`

/** The folder of the Node that runs the tests; another one may come first in PATH. */
const OURS = dirname(process.execPath)

/** A package with a dependency, as somebody has it lying about. */
async function withServer(box: Box) {
  await box.write('server/package.json', '{ "name": "server", "type": "module" }')
  await box.write('server/node_modules/dep/package.json', '{ "name": "dep", "type": "module", "exports": "./index.js" }')
  await box.write('server/node_modules/dep/index.js', 'export const word = "from the dependency"')
  await box.write('server/index.js', `#!/usr/bin/env node\n${SERVER}`)
}
const FENCED = {
  word: 'from the dependency',
  child: 'ERR_ACCESS_DENIED',
  sqlite: 'ERR_UNKNOWN_BUILTIN_MODULE',
  beside: 'ERR_ACCESS_DENIED',
}
const WALLED = { word: 'from the dependency', child: 0, sqlite: 'there', beside: 'ENOENT' }

withSandbox('programs in the process sandbox', () => {
  const box = boxed()

  it('node runs a script with its package and its dependencies, under Node’s permission model as well', async () => {
    await withServer(box)
    const { out, err, enforced } = await box.run(process.execPath, [box.at('server/index.js')])
    expect(err).to.equal('')
    expect([JSON.parse(out), enforced.nodePermission]).to.deep.equal([FENCED, true])
  })

  it('node runs without that second fence where it is switched off, and the wall stands', async () => {
    await withServer(box)
    const { out, enforced } = await box.run(process.execPath, ['index.js'], { cwd: box.at('server'), node: false })
    expect([JSON.parse(out), enforced.nodePermission]).to.deep.equal([WALLED, false])
  })

  it('a Node program by its own name runs with its package; the fence comes where it is asked for', async () => {
    await withServer(box)
    await mkdir(box.at('bin'))
    await symlink(box.at('server/index.js'), box.at('bin/my-server'))
    const env = { PATH: [box.at('bin'), OURS, '/usr/bin'].join(delimiter) }
    const open = await box.run('my-server', [], { env })
    expect([open.err, JSON.parse(open.out)]).to.deep.equal(['', WALLED])
    const fenced = await box.run('my-server', [], { env, node: true })
    expect([JSON.parse(fenced.out), fenced.enforced.nodePermission]).to.deep.equal([FENCED, true])
  })

  it('a bin of node_modules runs with all its packages', async () => {
    await withServer(box)
    await mkdir(box.at('server/node_modules/.bin'))
    await box.write('server/node_modules/dep/run.js', '#!/usr/bin/env node\nimport("dep").then(({ word }) => console.log(word))')
    await symlink('../dep/run.js', box.at('server/node_modules/.bin/dep'))
    expect((await box.run(box.at('server/node_modules/.bin/dep'), [], { env: { PATH: OURS } })).out).to.equal(
      'from the dependency\n'
    )
  })

  it('the fence lets it write what it is allowed to', async () => {
    await withServer(box)
    await mkdir(box.at('out with blanks'))
    const script = `require('fs').writeFileSync(${JSON.stringify(box.at('out with blanks/x'))}, 'kept'); require('fs').writeFileSync('/tmp/x', '')`
    const { code } = await box.run(process.execPath, ['-e', script], { limits: { allowedPaths: [box.at('out with blanks')] } })
    expect([code, await readFile(box.at('out with blanks/x'), 'utf8')]).to.deep.equal([0, 'kept'])
  })

  it('a Node without the permission model runs in the sandbox, and the result says so', async () => {
    await withServer(box)
    await box.write('old/node', '#!/bin/sh\n[ "$1" = --version ] && echo v20.1.0 || echo "$@"')
    const { out, enforced } = await box.run(box.at('old/node'), ['-p', '1'])
    expect([out, enforced.nodePermission]).to.deep.equal(['-p 1\n', false])
  })

  it('an installation shows its bin and lib, a folder that only looks like one shows the program alone', async () => {
    for (const prefix of ['installed', 'person']) {
      await box.write(
        `${prefix}/bin/tool`,
        '#!/bin/sh\ncat "$(dirname "$0")/../lib/part" 2>/dev/null || echo alone; ls "$(dirname "$0")/.." "$(dirname "$0")"'
      )
      await box.write(`${prefix}/lib/part`, 'with its part\n')
      await box.write(`${prefix}/bin/other`, '')
      await box.write(`${prefix}/secret`, '')
    }
    await mkdir(box.at('installed/lib/node_modules'))
    const installed = await box.run(box.at('installed/bin/tool'), [])
    expect(installed.out).to.contain('with its part').and.to.contain('other').and.not.to.contain('secret')
    const person = await box.run(box.at('person/bin/tool'), [])
    expect(person.out)
      .to.contain('alone')
      .and.not.match(/other|secret|part/)
  })

  it('reports a program that does not exist, and one that is not executable', async () => {
    expect((await refusal(box.wrap('no-such-program'))).code).to.equal('SANDBOX_COMMAND')
    await chmod(await box.write('text', 'no program'), 0o644)
    const { code, message } = await refusal(box.wrap(box.at('text')))
    expect([code, message]).to.deep.equal(['SANDBOX_COMMAND', `the program "${box.at('text')}" was not found`])
  })
})
