import { fileURLToPath } from 'node:url'

/** Files of a project with the provider and the tools of `scripted.ts`. */
export const SCRIPTED = {
  'svc.config.yaml': `plugins: [${JSON.stringify(fileURLToPath(new URL('scripted.ts', import.meta.url)))}]\n`,
}
