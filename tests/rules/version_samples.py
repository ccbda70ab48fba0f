"""Version files with decoys: text → the same text with its marks read. ``‹1.2.0›`` marks what a release changes."""

from __future__ import annotations

SAMPLES: dict[str, tuple[str, str]] = {}
"""By a name for the test: (file name, marked text)."""


def sample(name: str, file: str, text: str) -> None:
    SAMPLES[name] = (file, text)


sample(
    "setup.cfg",
    "setup.cfg",
    """\
# version = 1.2.0
; version = 1.2.0
[options]
version = 1.2.0
install_requires =
    a==1.2.0
    version = 1.2.0
[metadata]
name = orders
description = one
    version = 1.2.0
Version :  ‹1.2.0›\t
[bumpversion]
current_version = ‹1.2.0›
[tool.metadata]
version = 1.2.0
""",
)
sample(
    "setup.py",
    "setup.py",
    '''\
# -*- coding: utf-8 -*-
"""setup(version="1.2.0") é"""
from setuptools import setup
text = "setup(version='1.2.0')"; version = "1.2.0"  # 1.2.0
setup(name="örders", python_requires=">=3", version = r'‹1.2.0›' , install_requires=["a==1.2.0"],
    extras_require={"version": ["b==1.2.0"]}, options=dict(version="1.2.0"))
''',
)
sample(
    "setup.py constant",
    "setup.py",
    '''\
import setuptools
def other():
    VERSION = "1.2.0"
VERSION: str = """‹1.2.0›"""
if False:
    setuptools.setup(name="orders", version=VERSION, url="x/1.2.0")
''',
)
sample(
    "cargo workspace",
    "Cargo.toml",
    """\
[workspace]
members = ["a", 'version = "1.2.0"']
[workspace.package]
version = "‹1.2.0›"  # 1.2.0
rust-version = "1.2.0"
[workspace.dependencies]
orders = { version = "1.2.0", path = "." }
[[bin]]
name = "x"
version = "1.2.0"
[package.metadata]
version = "1.2.0"
""",
)
sample(
    "pom.xml",
    "pom.xml",
    """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- <version>1.2.0</version> -->
<m:project xmlns:m="http://maven.apache.org/POM/4.0.0">
  <parent><groupId>g</groupId><artifactId>p</artifactId><version>1.2.0-parent</version></parent>
  <artifactId>örders</artifactId>
  <version> ‹1.2.0›
  </version>
  <properties><version>1.2.0</version><a.version>1.2.0</a.version></properties>
  <dependencies><dependency><version>1.2.0</version></dependency></dependencies>
  <build><plugins><plugin><version>1.2.0</version></plugin></plugins></build>
</m:project>
""",
)
sample(
    "pom.xml revision",
    "pom.xml",
    """\
<project>
  <version>${revision}${changelist}</version>
  <properties>
    <changelist></changelist><!-- <revision>1.2.0</revision> -->
    <revision>‹1.2.0›</revision>
  </properties>
  <profiles><profile><properties><revision>1.2.0</revision></properties></profile></profiles>
</project>
""",
)
sample(
    "msbuild",
    "Directory.Build.props",
    """\
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <Version>‹1.2.0›</Version><LangVersion>1.2.0</LangVersion>
    <PackageVersion>$(Version)</PackageVersion>
  </PropertyGroup>
  <ItemGroup><PackageReference Include="a" Version="1.2.0"><Version>1.2.0</Version></PackageReference></ItemGroup>
  <!-- <Version>1.2.0</Version> -->
</Project>
""",
)
sample(
    "composer",
    "composer.json",
    """\
{"name": "a/orders", "require": {"b": "1.2.0", "version": "1.2.0"},
  "version" : "‹1.2.0›", "extra": {"version": "1.2.0"}}
""",
)
sample(
    "pubspec",
    "pubspec.yaml",
    """\
# version: 1.2.0
name: orders
description: >
  version: 1.2.0
environment: {version: 1.2.0}
"version":   '‹1.2.0›+7' # 1.2.0
dependencies:
  a: 1.2.0
  version: 1.2.0
""",
)
sample(
    "chart",
    "Chart.yaml",
    """\
apiVersion: v2
name: orders
dependencies:
  - {name: a, version: 1.2.0}
  - name: b
    version: 1.2.0
version: ‹1.2.0› # 1.2.0
appVersion: "v‹1.2.0›"
""",
)
sample(
    "mix",
    "mix.exs",
    '''\
defmodule Orders.MixProject do
  use Mix.Project
  @moduledoc """
  @version "1.2.0" #{inspect("1.2.0")}
  """
  @version "‹1.2.0›"
  # @version "1.2.0"
  @source ~s(version: "1.2.0")
  def project do
    [
      app: :orders, # version: "1.2.0"
      deps: [{:version, "1.2.0"}, {:a, version: "1.2.0"}],
      version: @version,
      docs: [version: "1.2.0", text: ?"]
    ]
  end
  def other, do: [version: "1.2.0"]
end
''',
)
sample(
    "mix inline",
    "mix.exs",
    """\
defmodule O do
  def application, do: [version: "1.2.0"]
  def project(), do: [app: :o, aliases: [version: "1.2.0"], version: "‹1.2.0›"]
end
""",
)
sample(
    "gemspec",
    "orders.gemspec",
    """\
=begin
  s.version = "1.2.0"
=end
Gem::Specification.new do |s|
  s.name = "orders" # s.version = "1.2.0"
  s.description = <<~TEXT
    s.version = "1.2.0"
  TEXT
  s.summary = %q{
    s.version = "1.2.0" }
  s.metadata = { "u" => "#{s.homepage}/v#{"1.2.0"}", 'version' => "1.2.0" }
  s.files = `git ls-files`.split("\\n").grep(/s.version = "1.2.0"/)
  s.required_ruby_version = "1.2.0"
  s.version     = '‹1.2.0›'.freeze # 1.2.0
  s.add_dependency "a", "1.2.0"
end
__END__
  s.version = "1.2.0"
""",
)
sample(
    "gemspec local",
    "orders.gemspec",
    """\
version = "‹1.2.0›"
Gem::Specification.new("orders") do |spec|
  spec.version = version
end
""",
)
sample(
    "version.rb",
    "lib/orders/version.rb",
    """\
# VERSION = "1.2.0"
module Orders
  OTHER_VERSION = "1.2.0"
  VERSION = "‹1.2.0›".freeze
  API = { VERSION: "1.2.0" }
end
""",
)
sample(
    "python module",
    "src/orders/__init__.py",
    '''\
# -*- coding: utf-8 -*-
"""örders

__version__ = "1.2.0"
"""
__all__ = ["__version__"]; text = "é"; __version__ = '‹1.2.0›'  # 1.2.0
def f():
    __version__ = "1.2.0"
api = {"__version__": "1.2.0"}
minimum = "1.2.0"
''',
)
sample(
    "python module twice", "orders/_version.py", '__version__ = version = "‹1.2.0›"\n__version_tuple__ = (1, 2, 0)\n'
)
sample("nuspec", "o.nuspec", "<package><metadata><id>O</id><version>‹1.2.0›</version></metadata></package>\n")
sample("citation", "CITATION.cff", "cff-version: 1.2.0\nversion: ‹1.2.0›\nidentifiers:\n  - version: 1.2.0\n")
sample("galaxy", "galaxy.yml", "namespace: a\nname: o\nversion: ‹1.2.0›\ndependencies: {b: 1.2.0}\n")
sample("version.txt", "version.txt", "‹1.2.0›")
sample("lerna", "lerna.json", '{"packages": ["1.2.0"], "command": {"version": "1.2.0"}, "version": "‹1.2.0›"}')
