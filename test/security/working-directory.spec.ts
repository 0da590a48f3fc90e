import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { inWorkspace } from '../support/plugin-workspace.ts'
import { tidesFolder } from '../support/tides.ts'
import { itWith } from '../support/needs.ts'

describe('files of the working directory that npm, oclif and Node read', function () {
  this.timeout(60_000)
  itWith('bubblewrap', it)('neither run nor count when a plugin is installed there', async () => {
    await inWorkspace(async workspace => {
      const marker = join(workspace.folder, 'executed')
      const code = `require('node:fs').writeFileSync(${JSON.stringify(marker)}, '')\n`
      const files = {
        '.npmrc':
          'node-options=--require=./evil.cjs\nscript-shell=./evil.sh\ngit=./evil.sh\nignore-scripts=false\nonload-script=./evil.cjs\n',
        'evil.cjs': code,
        'evil.sh': `#!/bin/sh\ntouch ${marker}\n`,
        'package.json': JSON.stringify({
          name: 'svc-project',
          scripts: { preinstall: './evil.sh', prepare: './evil.sh' },
          oclif: { plugins: ['./evil.cjs'], hooks: { init: './evil.cjs' } },
          imports: { '#svc': './evil.cjs' },
        }),
        'node.config.json': JSON.stringify({ nodeOptions: { import: ['./evil.cjs'] } }),
        '.env': 'NODE_OPTIONS=--require=./evil.cjs\nSVC_SERVER__PORT=1\n',
        'tsconfig.json': '{ "extends": "./evil.cjs", "ts-node": { "require": ["./evil.cjs"] } }',
      }
      for (const [name, text] of Object.entries(files)) await writeFile(join(workspace.folder, name), text, { mode: 0o755 })
      const { code: ended, err } = await workspace.svc(
        'plugins',
        'install',
        await tidesFolder(workspace.folder, { version: '1.0.0' }),
        '--yes'
      )
      expect(ended, err).to.equal(0)
      expect((await workspace.svc('--version')).code).to.equal(0)
      expect((await workspace.svc('config', 'show', 'server.port')).out).to.not.contain('environment')
      expect(existsSync(marker)).to.equal(false)
    })
  })
})
