import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CONDITIONS } from './entry.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What npm's commands of a tutorial are run as here: npm stands for Node or the compiler. */
export const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  'npm test': [process.execPath, ...CONDITIONS, '--test'],
  'npm run build': [
    process.execPath,
    join(ROOT, 'node_modules/typescript/bin/tsc'),
    '-p',
    'tsconfig.build.json',
    ...(CONDITIONS.length > 0 ? ['--customConditions', 'svc-source'] : []),
  ],
}
