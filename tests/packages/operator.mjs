// Checks the Prometheus operator's objects in a file against their definitions; prints the kind of each.
import { readFileSync } from 'node:fs';
import yaml from 'js-yaml';

for (const object of yaml.loadAll(readFileSync(process.argv[2], 'utf8'))) {
  if (!object?.apiVersion.startsWith('monitoring.coreos.com/')) continue;
  const definitions = await import(`@kubernetes-models/prometheus-operator/${object.apiVersion}/${object.kind}`);
  new definitions[object.kind](object).validate();
  console.log(object.kind);
}
