import starlight from '@astrojs/starlight'
import { defineConfig, passthroughImageService } from 'astro/config'
import starlightLinksValidator from 'starlight-links-validator'

const group = (label, directory, collapsed = false) => ({
  label,
  collapsed,
  items: [{ autogenerate: { directory, collapsed: true } }],
})

export default defineConfig({
  srcDir: './dist/source', // build.mjs writes it
  publicDir: './dist/public',
  outDir: './dist/site',
  image: { service: passthroughImageService() },
  integrations: [
    starlight({
      title: 'svc',
      plugins: [starlightLinksValidator({ errorOnLocalLinks: false })], // samples show addresses of a local server
      sidebar: [
        group('Tutorials', 'tutorials'),
        group('Guides', 'guides'),
        group('Reference', 'reference'),
        group('Explanation', 'explanation'),
        group('Project', 'project'),
        group('Packages', 'packages', true),
      ],
    }),
  ],
})
